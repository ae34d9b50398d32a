"""The whole path, as a newcomer runs it: real engines, controller, exporter, load."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from vramscope.demo.processes import descendants
from vramscope.demo.run import parser

PROGRAMS = Path(__file__).parent / "programs"
DEMO = [sys.executable, "-m", "vramscope.demo"]
LIMIT_S = 300


@pytest.mark.vllm
def test_the_demo_shows_pressure_on_two_engines_and_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [*DEMO, "--seconds", "20", "--folder", str(tmp_path / "run")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith("all stopped: no process is left\n")
    for engine in "ab":
        assert len(re.findall(rf"^ +\d+  {engine} ", done.stdout, re.MULTILINE)) >= 2, done.stdout
    for label in ("tokens served", "KV waste", "LoRA requests", "preemptions", "recompute tax"):
        assert label in done.stdout
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert left == {"adapters", "logs", "tiny", "vramscope.yaml"}, "records are of one run"


@pytest.mark.vllm
def test_a_signal_while_engines_boot_stops_them(tmp_path: Path) -> None:
    demo = subprocess.Popen(
        [*DEMO, "--folder", str(tmp_path / "run")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert demo.stdout is not None
        said = []
        for line in demo.stdout:
            said.append(line)
            if "engine b: starting (pid" in line:
                assert any("api_server" in command for command in descendants(demo.pid).values())
                demo.send_signal(signal.SIGTERM)
        assert demo.wait(LIMIT_S) == 130
        demo.stdout.close()
    finally:
        if demo.poll() is None:
            demo.terminate()
            demo.wait()
    assert said[-1] == "all stopped: no process is left\n"


@pytest.mark.vllm
def test_each_adapter_of_the_tiny_model_answers_in_its_own_way(
    tiny_model: Path, tiny_adapters: dict[str, Path]
) -> None:
    environment = {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_PLUGINS": "",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    }
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / "run_engine.py"), tiny_model, *tiny_adapters.values()],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")] or [
        f"no result: {done.stderr[-2000:]}"
    ]
    result = json.loads(line.removeprefix("RESULT "))
    base, *adapted, again = map(tuple, result["answers"])
    assert len({base, *adapted}) == 1 + len(tiny_adapters)
    assert again == base
    assert result["chat_prompt"] == "user: hi\nassistant: "


@pytest.mark.parametrize("text", ["x", "0", "-5", "nan", "1e9", ""])
def test_an_impossible_duration_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        parser().parse_args(["--seconds", text])
    assert raised.value.code == 2
    assert "want seconds" in capsys.readouterr().err


def test_the_environment_sets_the_duration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_SECONDS", "12")
    assert parser().parse_args([]).seconds == 12
