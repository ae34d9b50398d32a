import os
from pathlib import Path

import pytest

from vramscope.exporters.engine.rundir import open_folder, remove_dead_records, run_dir


def test_named_folder_wins() -> None:
    assert run_dir({"VRAMSCOPE_RUN_DIR": "/x/y", "XDG_RUNTIME_DIR": "/z"}) == Path("/x/y")


def test_system_folder_when_this_user_can_write_it() -> None:
    assert run_dir({"XDG_RUNTIME_DIR": "/z"}, lambda _: True) == Path("/run/vramscope")


def test_runtime_folder_when_the_system_one_is_not_writable() -> None:
    assert run_dir({"XDG_RUNTIME_DIR": "/z"}, lambda _: False) == Path("/z/vramscope")


def test_temp_folder_of_this_user_as_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getuid", lambda: 1234)
    assert run_dir({}, lambda _: False).name == "vramscope-1234"


def test_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(OSError, match="Not a directory"):
        open_folder(tmp_path / "link")


def test_dump_without_a_record_is_removed_by_the_next_engine(tmp_path: Path) -> None:
    gone = ("a.1.blocks", ".a.1.blocks.new")
    kept = ("b.2.blocks", ".b.2.blocks.new", "b.2.vramscope.txt", "notes.txt")
    for name in (*gone, *kept):
        (tmp_path / name).write_bytes(b"")
    live = f"b.{os.getpid()}.vramscope"
    (tmp_path / live).write_bytes(b"")
    (tmp_path / f"b.{os.getpid()}.blocks").write_bytes(b"")
    (tmp_path / "b.2.vramscope").symlink_to("nowhere")  # not ours to read, so not ours to remove
    folder_fd = open_folder(tmp_path)
    remove_dead_records(folder_fd)
    os.close(folder_fd)
    left = {live, f"b.{os.getpid()}.blocks", "b.2.vramscope", *kept}
    assert {path.name for path in tmp_path.iterdir()} == left


def test_dead_record_goes_with_its_dump(tmp_path: Path) -> None:
    for name in ("a.1.vramscope", "a.1.blocks"):
        (tmp_path / name).write_bytes(b"")
    folder_fd = open_folder(tmp_path)
    remove_dead_records(folder_fd)
    os.close(folder_fd)
    assert list(tmp_path.iterdir()) == []
