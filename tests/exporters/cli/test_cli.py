import pytest

from vramscope.exporters import cli
from vramscope.exporters.cli import COMMANDS, Command, main
from vramscope.exporters.errors import MissingExtraError


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in COMMANDS)


def test_no_command_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage: vramscope COMMAND" in capsys.readouterr().out


def test_unknown_command_names_the_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["exprot"]) == 2
    assert "unknown command 'exprot': want one of blocks, dashboards" in capsys.readouterr().err


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("vramscope 0.")


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_exists_and_explains_itself(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main([name, "--help"])
    assert stop.value.code == 0
    assert f"usage: vramscope {name}" in capsys.readouterr().out


def test_missing_extra_says_what_to_install() -> None:
    command = Command("no_such_package_at_all.module:main", "controller", "")
    with pytest.raises(MissingExtraError, match=r"pip install 'vramscope\[controller\]'"):
        cli.load("serve", command)


def test_failure_is_one_line_and_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = Command("no_such_package_at_all.module:main", "exporter", "")
    monkeypatch.setitem(COMMANDS, "broken", command)
    assert main(["broken"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_bug_of_our_own_is_not_taken_for_a_missing_extra() -> None:
    command = Command("vramscope.exporters.no_such_module:main", "exporter", "")
    with pytest.raises(ModuleNotFoundError):
        cli.load("export", command)
