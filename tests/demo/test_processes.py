import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from vramscope.demo import processes
from vramscope.demo.processes import Program, ProgramError

PROGRAMS = Path(__file__).parent / "programs"
READY = r"^ready (\S+)$"
SHORT_PATIENCE = ((signal.SIGINT, 0.2), (signal.SIGTERM, 2.0), (signal.SIGKILL, 10.0))


def program(tmp_path: Path, code: str) -> Program:
    return Program("child", [sys.executable, "-u", "-c", code], {"WORD": "here"}, tmp_path / "log")


async def test_the_ready_line_is_found_and_those_before_it_are_shown(tmp_path: Path) -> None:
    said: list[str] = []
    child = program(
        tmp_path,
        "import os, signal; print('booting'); print('ready', os.environ['WORD']); signal.pause()",
    )
    try:
        match = await child.ready(READY, said.append)
    finally:
        await child.stop()
    assert match[1] == "here"
    assert said == ["booting"]
    assert await child.ended() == "child ended by SIGINT"


async def test_a_program_that_ends_before_it_is_ready_says_how(tmp_path: Path) -> None:
    said: list[str] = []
    child = program(tmp_path, "print('no port', end=''); raise SystemExit(3)")
    with pytest.raises(ProgramError, match=r"child ended with exit code 3 .*log"):
        await child.ready(READY, said.append)
    assert said == ["no port"]
    await child.stop()


async def test_a_program_that_ignores_ctrl_c_is_asked_again(
    tmp_path: Path,
) -> None:
    code = "import signal; signal.signal(2, signal.SIG_IGN); print('ready x'); signal.pause()"
    child = program(tmp_path, code)
    await child.ready(READY, lambda line: None)
    await child.stop(SHORT_PATIENCE)
    assert await child.ended() == "child ended by SIGTERM"


async def test_a_program_that_ignores_all_is_killed_and_that_is_a_mistake(
    tmp_path: Path,
) -> None:
    code = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready x")
while True:
    signal.pause()
"""
    child = program(tmp_path, code)
    await child.ready(READY, lambda line: None)
    with pytest.raises(ProgramError, match="did not stop when asked"):
        await child.stop(SHORT_PATIENCE)
    assert await child.ended() == "child ended by SIGKILL"


def test_an_orphan_in_another_session_is_found_and_ended() -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / "leave_orphan.py")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "True 1 {}\n", done.stderr


def test_only_running_descendants_are_listed() -> None:
    assert processes.descendants(2**22 + 1) == {}
    assert asyncio.run(processes.end_descendants(2**22 + 1)) == []
