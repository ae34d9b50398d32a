"""A process group ends as a whole, whatever its members do."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from vramscope.controller.errors import EngineStartError
from vramscope.controller.log_tail import telling_line
from vramscope.controller.process import ProcessGroup, exit_text, session_members

Started = Callable[..., Awaitable[ProcessGroup]]


@pytest.fixture
async def started(tmp_path: Path) -> AsyncIterator[Started]:
    """Start ``python -c CODE``, wait until it has said ``up`` a number of times."""
    async with AsyncExitStack() as stack:

        async def start(code: str, ups: int = 1) -> ProcessGroup:
            log = tmp_path / "log"
            group = ProcessGroup.start([sys.executable, "-c", code], os.environ, log)
            stack.push_async_callback(group.stop, 0.0)
            async with asyncio.timeout(30):
                # A line in a file raises no event.
                while not group.exited.done():
                    if log.read_text().count("up\n") >= ups:
                        break
                    await asyncio.sleep(0.01)
            return group

        yield start


SLEEP = "print('up', flush=True); import time; time.sleep(600)"
# A child in a process group of its own, whose own child ignores SIGTERM.
FAMILY = f"""
import os, signal, subprocess, sys
grandchild = '''import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}'''
child = f'''import subprocess, sys
subprocess.Popen([sys.executable, "-c", {{grandchild!r}}])
{SLEEP}'''
subprocess.Popen([sys.executable, "-c", child], process_group=0)
{SLEEP}
"""


async def test_sigterm_ends_a_well_behaved_process(started: Started) -> None:
    group = await started(SLEEP)
    assert group.members() == [group.pid]
    assert await group.stop(10.0) is True
    assert group.exited.result() == -signal.SIGTERM
    assert session_members(group.pid) == []


async def test_children_of_children_end_even_when_they_ignore_sigterm(started: Started) -> None:
    group = await started(FAMILY, ups=3)
    assert len(group.members()) == 3
    assert await group.stop(0.5) is False
    assert session_members(group.pid) == []


async def test_orphans_of_a_dead_leader_are_found_and_ended(started: Started) -> None:
    group = await started(FAMILY, ups=3)
    os.kill(group.pid, signal.SIGKILL)
    async with asyncio.timeout(10):
        assert await group.exited == -signal.SIGKILL
    assert len(group.members()) == 2
    await group.stop(0.1)
    assert session_members(group.pid) == []


async def test_an_exit_status_is_known_without_asking(started: Started) -> None:
    group = await started("import sys; sys.exit(7)")
    async with asyncio.timeout(10):
        assert await group.exited == 7
    assert await group.stop(1.0) is True
    assert await group.stop(1.0) is True


async def test_a_program_that_does_not_exist_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(EngineStartError, match=r"^can't start /no/such: No such file"):
        ProcessGroup.start(["/no/such"], {}, tmp_path / "log")
    with pytest.raises(EngineStartError, match=r"^log .*: No such file or directory: want a file"):
        ProcessGroup.start([sys.executable], {}, tmp_path / "gone" / "log")


async def test_output_is_kept_from_other_users(started: Started, tmp_path: Path) -> None:
    await started(SLEEP)
    assert (tmp_path / "log").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("code", "text"),
    [(0, "exit status 0"), (-9, "killed by SIGKILL"), (-99, "killed by signal 99")],
)
def test_how_a_process_ended_is_said_in_words(code: int, text: str) -> None:
    assert exit_text(code) == text


VLLM_LOG = """\
INFO 01-31 12:00:00 [api_server.py:10] starting
\x1b[0;36m(EngineCore pid=12)\x1b[0;0m ERROR 01-31 12:00:01 [core.py:100] Traceback (most recent
(EngineCore pid=12) ERROR 01-31 12:00:01 [core.py:100] ValueError: no room for 512 tokens
(EngineCore pid=12) Process EngineCore:
(APIServer pid=9) RuntimeError: Engine core initialization failed. See root cause above.
[rank0]: warning: something leaked
"""


@pytest.mark.parametrize(
    ("log", "line"),
    [
        (VLLM_LOG, "ValueError: no room for 512 tokens"),
        ("a\nOSError: [Errno 5] x\n\n", "OSError: [Errno 5] x"),
        (
            "torch.OutOfMemoryError: CUDA out of memory\nbye",
            "torch.OutOfMemoryError: CUDA out of memory",
        ),
        (
            "usage: x\napi_server.py: error: unrecognized arguments: --foo\n",
            "api_server.py: error: unrecognized arguments: --foo",
        ),
        (
            (
                "pydantic.ValidationError: 1 validation error for ModelConfig\n"
                "  Value error, no such repository\n    For further information\n"
            ),
            (
                "pydantic.ValidationError: 1 validation error for ModelConfig Value error, "
                "no such repository"
            ),
        ),
        ("/bin/python: No module named vllm\n", "/bin/python: No module named vllm"),
        ("one\ntwo\n", "two"),
        ("x" * 1000, "x" * 300),
        ("", ""),
    ],
)
def test_the_telling_line_of_a_log_is_its_cause(tmp_path: Path, log: str, line: str) -> None:
    (tmp_path / "log").write_text(log)
    assert telling_line(tmp_path / "log") == line


def test_a_log_that_is_gone_tells_nothing(tmp_path: Path) -> None:
    assert telling_line(tmp_path / "none") == ""
