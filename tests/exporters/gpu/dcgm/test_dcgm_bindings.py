"""Finding and importing the host's pydcgm; the modules here are written by the tests."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vramscope.exporters.errors import SourceUnavailableError
from vramscope.exporters.gpu.dcgm import DcgmSource
from vramscope.exporters.gpu.dcgm_bindings import FOLDERS, VARIABLE, load_bindings
from vramscope.exporters.signals.gpu import GpuReading

NAMES = ("pydcgm", "dcgm_agent", "dcgm_structs")
HOST = next((folder for folder in FOLDERS if (folder / "pydcgm.py").is_file()), None)


@pytest.fixture(autouse=True)
def _clean_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in NAMES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield
    for name in NAMES:
        sys.modules.pop(name, None)


def write(folder: Path, pydcgm: str = "import dcgm_agent, dcgm_structs\n") -> Path:
    folder.mkdir()
    (folder / "pydcgm.py").write_text(pydcgm)
    (folder / "dcgm_agent.py").write_text("import dcgm_structs\n")
    (folder / "dcgm_structs.py").write_text(
        "import warnings\n"
        "warnings.warn('old', DeprecationWarning)\n"
        "class DCGMError(Exception): pass\n"
    )
    return folder


def test_first_folder_that_has_them_is_taken_and_the_path_is_left_clean(tmp_path: Path) -> None:
    folder = write(tmp_path / "bindings")
    before = list(sys.path)
    bindings = load_bindings({}, [tmp_path / "none", folder])
    assert Path(bindings.pydcgm.__file__).parent == folder
    assert bindings.error is bindings.structs.DCGMError
    assert sys.path == before
    assert not (folder / "__pycache__").exists(), "the folder is the host's"


def test_named_folder_goes_before_the_host_s(tmp_path: Path) -> None:
    mine, host = write(tmp_path / "mine"), write(tmp_path / "host")
    bindings = load_bindings({VARIABLE: str(mine)}, [host])
    assert Path(bindings.agent.__file__).parent == mine


def test_none_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailableError, match="install NVIDIA's package datacenter-gpu"):
        load_bindings({}, [tmp_path])


def test_wrongly_named_folder_is_said_and_the_host_s_not_taken(tmp_path: Path) -> None:
    host = write(tmp_path / "host")
    with pytest.raises(SourceUnavailableError, match=rf"{VARIABLE}=\S*none: no readable pydcgm"):
        load_bindings({VARIABLE: str(tmp_path / "none")}, [host])


def test_failed_import_can_be_tried_again(tmp_path: Path) -> None:
    folder = write(tmp_path / "bindings", "import dcgm_structs\nraise OSError('no such thing')\n")
    before = list(sys.path)
    with pytest.raises(SourceUnavailableError, match="can't be imported: OSError: no such thing"):
        load_bindings({}, [folder])
    assert sys.path == before
    assert not sys.modules.keys() & set(NAMES)
    (folder / "pydcgm.py").write_text("import dcgm_agent\nmended = True\n")
    assert load_bindings({}, [folder]).pydcgm.mended


def test_folder_that_may_not_be_read_is_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "bindings")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may read anything
    with pytest.raises(SourceUnavailableError, match="no DCGM Python bindings"):
        load_bindings({}, [folder])


if HOST is not None:

    def test_host_s_own_bindings_read_or_say_why_not() -> None:
        read: object = None
        with contextlib.suppress(SourceUnavailableError):  # a host that has DCGM and no GPU
            source = DcgmSource()
            read = source.read()
            source.close()
        assert read is None or isinstance(read, GpuReading)
