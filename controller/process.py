"""A child process in a session of its own, watched and ended together with all it started.

The child leads its session and process group, so whatever it starts is found by the session
id even after its parent is gone: vLLM's EngineCore and workers survive a killed API server.
The dead leader stays unreaped until the whole session is gone. Its pid, which is the group's
id, can therefore not be given to a stranger whom we would signal by mistake.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from vramscope.controller.errors import EngineStartError, ProcessLeftError

__all__ = ["ProcessGroup", "exit_text", "session_members"]

POLL_S = 0.05
KILL_WAIT_S = 5.0
LOG_MODE = 0o600
"""An engine's output may hold prompts, when vLLM is told to log requests."""


class ProcessGroup:
    """One started program and everything that it started in its session.

    Attributes:
        pid: of the program; also the id of its session and process group.
        exited: done when the program has ended, with its return code (minus the signal's
            number when one ended it). Others of its session may live on.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.pid = process.pid
        self.exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._process = process
        self._reaped = False
        self._pidfd = os.pidfd_open(process.pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._on_exit)

    @classmethod
    def start(
        cls, command: Sequence[str], environment: Mapping[str, str], log_path: Path
    ) -> "ProcessGroup":
        """Start a program with its output in a file.

        Raises:
            EngineStartError: the program or the log file can't be opened.
        """
        try:
            log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, LOG_MODE)
        except OSError as error:
            raise EngineStartError(
                f"log {log_path}: {error.strerror}: want a file that can be written"
            ) from error
        try:
            process = subprocess.Popen(  # noqa: S603 - the command is ours and the user's file's
                command,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise EngineStartError(f"can't start {command[0]}: {error.strerror}") from error
        finally:
            os.close(log)
        return cls(process)

    def members(self) -> list[int]:
        """Return the pids that live in the session."""
        return [] if self._reaped else session_members(self.pid)

    async def stop(self, grace_s: float) -> bool:
        """End the whole session: SIGTERM, then SIGKILL for what is left after ``grace_s``.

        Returns:
            Whether SIGTERM was enough.

        Raises:
            ProcessLeftError: somebody outlived SIGKILL.
        """
        if self._reaped:
            return True
        self._signal(signal.SIGTERM)
        gentle = await self._gone(grace_s)
        if not gentle:
            self._signal(signal.SIGKILL)
            if not await self._gone(KILL_WAIT_S):
                raise ProcessLeftError(f"processes {self.members()} outlived SIGKILL")
        self._process.wait()
        self._reaped = True
        return gentle

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)
        for pid in self.members():
            # A child may have left the group (a shell's job control does), not the session.
            with contextlib.suppress(ProcessLookupError):
                if os.getpgid(pid) != self.pid:
                    os.kill(pid, number)

    async def _gone(self, timeout_s: float) -> bool:
        """Wait until nobody is left."""
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.shield(self.exited)
                while self.members():  # noqa: ASYNC110 - no event tells when a grandchild ends
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            return False
        return True

    def _on_exit(self) -> None:
        # WNOWAIT looks without reaping.
        status = os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if status is None:
            return
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        by_signal = status.si_code != os.CLD_EXITED
        if not self.exited.done():
            self.exited.set_result(-status.si_status if by_signal else status.si_status)


def session_members(session: int) -> list[int]:
    """Return the pids of a session that still run; zombies hold nothing and don't count."""
    members = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
        except OSError:
            continue  # it ended while we looked
        # pid (name) state ppid pgrp session ...; the name may hold anything, ')' included.
        state, _, _, its_session = stat.rpartition(")")[2].split()[:4]
        if int(its_session) == session and state not in "ZX":
            members.append(int(entry.name))
    return members


def exit_text(returncode: int) -> str:
    """Say how a process ended.

    >>> exit_text(-9)
    'killed by SIGKILL'
    >>> exit_text(1)
    'exit status 1'
    """
    if returncode >= 0:
        return f"exit status {returncode}"
    try:
        return f"killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"killed by signal {-returncode}"
