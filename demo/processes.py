"""The programs that the demo starts, and the proof that nothing of them is left."""

import asyncio
import contextlib
import ctypes
import os
import re
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from vramscope.exporters.errors import VramscopeError

__all__ = ["Program", "ProgramError", "adopt_orphans", "descendants", "end_descendants"]

PR_SET_CHILD_SUBREAPER = 36
POLL_S = 0.1
Patience = Sequence[tuple[signal.Signals, float]]
STOP_PATIENCE: Patience = (
    (signal.SIGINT, 30.0),
    (signal.SIGTERM, 10.0),
    (signal.SIGKILL, 10.0),
)
GONE_WITHIN_S = 5.0


class ProgramError(VramscopeError):
    """A program of the demo did not start, ended by itself, or did not stop."""


class Program:
    """A child process with its output in a log.

    It leads a session of its own, so that Ctrl-C in the terminal reaches only the demo, which
    then stops the others in order.
    """

    def __init__(
        self, name: str, command: Sequence[str], env: Mapping[str, str], log_path: Path
    ) -> None:
        self.name = name
        self.log_path = log_path
        with log_path.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                command,
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    async def ready(self, pattern: str, say: Callable[[str], None]) -> re.Match[str]:
        """Wait for a line of its output that matches ``pattern``; ``say`` those before it.

        Raises:
            ProgramError: the program ended first.
        """
        seen = 0
        while True:
            code = self._process.poll()
            # A line without its end is still being written, while the program lives.
            lines = self.log_path.read_text(errors="replace").splitlines(keepends=True)
            complete = [line.rstrip() for line in lines if code is not None or line.endswith("\n")]
            for line in complete[seen:]:
                match = re.search(pattern, line)
                if match:
                    return match
                say(line)
            seen = len(complete)
            if code is not None:
                raise ProgramError(f"{self._end(code)} before it was ready: log: {self.log_path}")
            await asyncio.sleep(POLL_S)

    async def ended(self) -> str:
        """Wait for the program's end; return how it ended."""
        while (code := self._process.poll()) is None:  # noqa: ASYNC110 - its end has no event
            await asyncio.sleep(POLL_S)
        return self._end(code)

    async def stop(self, patience: Patience = STOP_PATIENCE) -> None:
        """Ask it to stop as Ctrl-C would, then insist.

        Args:
            patience: signals to send, and the seconds each gets to work.

        Raises:
            ProgramError: it had to be killed, or outlived even that.
        """
        for number, patience_s in patience:
            if self._process.poll() is None:
                self._process.send_signal(number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    await self.ended()
                if number is signal.SIGKILL:
                    break
                return
        raise ProgramError(f"{self.name} did not stop when asked to: log: {self.log_path}")

    def _end(self, code: int) -> str:
        how = f"with exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
        return f"{self.name} ended {how}"


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that none goes unseen.

    Raises:
        OSError: the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def descendants(root: int) -> dict[int, str]:
    """Return the command of each running descendant of process ``root``, by pid.

    Zombies hold nothing and don't count.
    """
    parents: dict[int, int] = {}
    commands: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended while we looked
        name, _, rest = stat.partition("(")[2].rpartition(")")
        state, parent = rest.split()[:2]
        parents[int(entry.name)] = int(parent)
        if state not in "ZX":
            commands[int(entry.name)] = command.strip() or name

    def descends(pid: int) -> bool:
        while pid := parents.get(pid, 0):
            if pid == root:
                return True
        return False

    return {pid: command for pid, command in commands.items() if descends(pid)}


async def end_descendants(root: int) -> list[str]:
    """Kill what is left of this process's descendants.

    Returns:
        A line for each that was left: the programs should have ended it themselves.
    """
    left = descendants(root)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(GONE_WITHIN_S):
            while descendants(root):  # noqa: ASYNC110 - an adopted orphan's end has no event
                await asyncio.sleep(POLL_S)
    return [
        f"process {pid} was left and was killed: {command[:100]}" for pid, command in left.items()
    ]
