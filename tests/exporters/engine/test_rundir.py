from pathlib import Path

import pytest

from vramscope.exporters.engine.rundir import open_folder, run_dir


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
