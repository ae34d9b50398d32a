"""The command itself: help, --check, exit codes, signals."""

import json
import signal
import subprocess
import sys
import textwrap
import urllib.request
from pathlib import Path
from typing import IO

import pytest

from vramscope.controller.command import engine_environment, vllm_command
from vramscope.controller.config import EngineConfig
from vramscope.controller.process import session_members
from vramscope.controller.serve import main
from vramscope.exporters.errors import MissingExtraError

TIMEOUT_S = 60


def write(folder: Path, text: str) -> Path:
    file = folder / "vramscope.yaml"
    file.write_text(f"{text}\nfront_door: {{port: 0}}\nadmin: {{port: 0}}\nlog_dir: logs\n")
    return file


def test_check_says_what_the_file_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, "engines: [{name: a, model: m, adapters: {x: o/x, y: o/y}}]")
    assert main(["-c", str(file), "--check"]) == 0
    expected = f"{file}: ok: 1 engine, 1 model, 2 adapters, policy seed\n"
    assert capsys.readouterr().out == expected
    assert not (tmp_path / "logs").exists()


def test_help_teaches_with_a_file_that_is_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    example = text.partition("a file to begin with:\n")[2].partition("\nthen:")[0]
    for folder in ("models/tiny", "adapters/french"):
        (tmp_path / folder).mkdir(parents=True)
    assert main(["-c", str(write(tmp_path, textwrap.dedent(example))), "--check"]) == 0


@pytest.mark.vllm
def test_the_engines_command_is_vllms_with_the_files_settings() -> None:
    engine = EngineConfig.model_validate(
        {
            "name": "a",
            "model": "org/tiny",
            "served_name": "t",
            "args": ["--max-model-len", 512],
            "adapters": {"fr": "org/a=b,c"},
        }
    )
    command = vllm_command(engine, 1234)
    assert command[1:3] == ["-m", "vllm.entrypoints.openai.api_server"]
    assert command[3:-2] == [
        *("--host", "127.0.0.1", "--port", "1234"),
        *("--model", "org/tiny", "--served-model-name", "t"),
        *("--enable-lora", "--lora-modules", '{"name": "fr", "path": "org/a=b,c"}'),
    ]
    assert command[-2:] == ["--max-model-len", "512"]


def test_without_vllm_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    engine = EngineConfig.model_validate({"name": "a", "model": "org/tiny"})
    with pytest.raises(MissingExtraError, match=r"pip install 'vramscope\[engine\]'"):
        vllm_command(engine, 1)


def test_an_engines_environment_adds_its_own_and_who_it_is() -> None:
    engine = EngineConfig.model_validate({"name": "a", "model": "m", "env": {"X": "mine"}})
    environment = engine_environment(engine, Path("/run/x"), {"X": "ours", "Y": "kept"})
    assert environment == {
        "X": "mine",
        "Y": "kept",
        "VRAMSCOPE_ENGINE": "a",
        "VRAMSCOPE_RUN_DIR": "/run/x",
    }


class Program:
    """``serve`` over fake engines as a child process."""

    def __init__(self, serve: Path, config: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(serve), "-c", str(config)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ready_urls(self) -> list[str]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("ready: front door http://127.0.0.1:")
        return [word.rstrip(",\n") for word in line.split() if word.startswith("http")]

    def end(self) -> tuple[int, str]:
        _, err = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_drains_stops_and_exits_0(
    tmp_path: Path, serve_fake_file: Path, number: signal.Signals
) -> None:
    program = Program(serve_fake_file, write(tmp_path, "engines: [{name: a, model: org/tiny}]"))
    front, admin = program.ready_urls()
    with urllib.request.urlopen(f"{admin}/debug/engines", timeout=TIMEOUT_S) as page:
        pid = json.load(page)["engines"][0]["pid"]
    with urllib.request.urlopen(f"{front}/v1/models", timeout=TIMEOUT_S) as page:
        assert json.load(page)["data"][0]["id"] == "tiny"
    program.process.send_signal(number)
    code, err = program.end()
    assert code == 0, err
    assert "drained: 0 requests finished, 0 cut" in err
    assert "stopped engines: a" in err
    assert session_members(pid) == []


def test_a_signal_while_starting_stops_what_was_started(
    tmp_path: Path, serve_fake_file: Path
) -> None:
    text = "engines: [{name: a, model: org/tiny, args: [--mute]}]"
    program = Program(serve_fake_file, write(tmp_path, text))
    pid = _pid_when_started(program.process.stderr)
    program.process.send_signal(signal.SIGTERM)
    code, err = program.end()
    assert code == 130, err
    assert session_members(pid) == []


def test_an_engine_that_dies_at_start_makes_exit_1_with_its_line(
    tmp_path: Path, serve_fake_file: Path
) -> None:
    text = "engines: [{name: a, model: org/tiny, args: [--die, 'OSError: no model']}]"
    program = Program(serve_fake_file, write(tmp_path, text))
    code, err = program.end()
    assert code == 1
    log = tmp_path / "logs" / "a.log"
    expected = f"engine a: died at start: exit status 3: OSError: no model (log {log})"
    assert err.splitlines()[-1] == expected


def _pid_when_started(stderr: IO[str] | None) -> int:
    assert stderr is not None
    for line in stderr:
        if "engine a: starting (pid " in line:
            return int(line.partition("(pid ")[2].partition(",")[0])
    raise AssertionError("it ended without starting the engine")
