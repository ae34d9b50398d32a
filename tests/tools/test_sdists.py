"""Which sources the drift gate takes from an index, and what it refuses."""

import hashlib
import io
import json
import sys
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools" / "drift"))  # scripts run by path find each other like this

import sdists  # noqa: E402

FILES = {"vllm/v1/a.py": b"A = 1\n", "vllm/v1/deep/b.py": b"", "vllm/entry.py": b"", "x.txt": b""}


def archive(folder: Path, files: dict[str, bytes], name: str = "vllm-0.13.0.tar.gz") -> Path:
    file = folder / name
    with tarfile.open(file, "w:gz") as made:
        for path, content in files.items():
            member = tarfile.TarInfo(f"vllm-0.13.0/{path}")
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
    return file


def sdist(file: Path) -> sdists.Sdist:
    return sdists.Sdist("0.13.0", file.as_uri(), hashlib.sha256(file.read_bytes()).hexdigest())


def test_only_the_folders_that_matter_are_kept(tmp_path: Path) -> None:
    tree = sdists.bring(sdist(archive(tmp_path, FILES)), tmp_path / "kept")
    kept = {str(file.relative_to(tree)) for file in tree.rglob("*.py")}
    assert kept == {"vllm/v1/a.py", "vllm/v1/deep/b.py"}
    assert (tree / "vllm/v1/a.py").read_bytes() == b"A = 1\n"


def test_what_is_there_is_not_downloaded_again(tmp_path: Path) -> None:
    one = sdist(archive(tmp_path, FILES))
    tree = sdists.bring(one, tmp_path / "kept")
    (tmp_path / "vllm-0.13.0.tar.gz").unlink()
    assert sdists.bring(one, tmp_path / "kept") == tree


def test_other_folders_to_keep_are_downloaded_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = sdist(archive(tmp_path, FILES))
    sdists.bring(one, tmp_path / "kept")
    monkeypatch.setattr(sdists, "KEPT", ("vllm/entry",))
    tree = sdists.bring(one, tmp_path / "kept")
    assert [file.name for file in tree.rglob("*.py")] == ["entry.py"]


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"vllm/v1/../../../../evil.py": b""}, "no source file"),
        ({"vllm/v1/huge.py": bytes(sdists.MOST_FILE_BYTES + 1)}, "no source file"),
    ],
)
def test_hostile_archive_leaves_nothing(
    tmp_path: Path, files: dict[str, bytes], complaint: str
) -> None:
    kept = tmp_path / "kept"
    with pytest.raises(sdists.DriftError, match=complaint):
        sdists.bring(sdist(archive(tmp_path, files)), kept)
    assert list(kept.iterdir()) == []


def test_other_bytes_than_the_index_promised_leave_nothing(tmp_path: Path) -> None:
    one = sdist(archive(tmp_path, FILES))._replace(sha256="0" * 64)
    with pytest.raises(sdists.DriftError, match="is not the 0000"):
        sdists.bring(one, tmp_path / "kept")
    assert list((tmp_path / "kept").iterdir()) == []


def test_archive_that_ends_early_leaves_nothing(tmp_path: Path) -> None:
    file = archive(tmp_path, FILES)
    file.write_bytes(file.read_bytes()[:60])
    with pytest.raises(sdists.DriftError, match=r"vllm-0\.13\.0"):
        sdists.bring(sdist(file), tmp_path / "kept")
    assert list((tmp_path / "kept").iterdir()) == []


def listed(name: str, yanked: bool | str = False) -> dict[str, object]:
    return {"filename": name, "url": f"../{name}", "hashes": {"sha256": "f"}, "yanked": yanked}


def test_newest_patch_of_each_supported_minor_in_order() -> None:
    files = [
        listed("vllm-0.9.0.tar.gz"),
        listed("vllm-0.30.0.tar.gz"),
        listed("vllm-0.13.0.tar.gz"),
        listed("vllm-0.14.10.tar.gz"),
        listed("vllm-0.14.9.post1.tar.gz"),
        listed("vllm-0.14.11.tar.gz", yanked="broken"),
        listed("vllm-0.31.0rc1.tar.gz"),
        listed("vllm-0.31.0-cp38-abi3-linux_x86_64.whl"),
    ]
    found = sdists.newest_of_each_minor(sdists.sdists(files, "https://index.test/simple/vllm/"))
    assert [sdist.version for sdist in found] == ["0.13.0", "0.14.10", "0.30.0"]
    assert found[0].url == "https://index.test/simple/vllm-0.13.0.tar.gz"


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, object]]]:
    """Files that pip's index, on the loopback, lists."""
    files: list[dict[str, object]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = (self.path, self.headers["Accept"]) == ("/simple/vllm/", sdists.INDEX_JSON)
            self.send_response(200 if wanted else 404)
            self.end_headers()
            self.wfile.write(json.dumps({"files": files}).encode())

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
    yield files
    server.shutdown()
    thread.join()
    server.server_close()


def test_index_is_the_one_that_pip_uses(index: list[dict[str, object]]) -> None:
    index.append(listed("vllm-0.13.0.tar.gz"))
    (one,) = sdists.published()
    assert one.url.endswith("/simple/vllm-0.13.0.tar.gz")


def test_index_without_sources_is_an_error_that_names_it(index: list[dict[str, object]]) -> None:
    with pytest.raises(sdists.DriftError, match="/simple/vllm/: lists no sources"):
        sdists.published()


def test_index_that_cannot_be_reached_is_an_error_that_names_it(
    monkeypatch: pytest.MonkeyPatch, index: list[dict[str, object]]
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    with pytest.raises(sdists.DriftError, match=r"/simple/vllm/: .*refused"):
        sdists.published()
