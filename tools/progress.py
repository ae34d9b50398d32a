"""One progress line a step; what its commands print goes to a log."""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

__all__ = ["SetupError", "Steps", "one_at_a_time"]

TICK_S = 1.0
TELLING = ("error", "no matching distribution", "no space left", "could not", "unable to", "failed")
TELLING_LINES = 6


class SetupError(Exception):
    """What is wrong and what to do, for a person. May be several lines."""


class Steps:
    """Prints ``[2/4] vLLM CPU build and 150 packages ... 38 s`` for each step.

    On a terminal the seconds count up on that line.
    """

    def __init__(self, total: int, log: Path, out: TextIO = sys.stdout) -> None:
        self._total = total
        self._done = 0
        self._log = log
        self._out = out

    def run(self, title: str, *attempts: Sequence[Sequence[str]]) -> None:
        """Run the next step.

        Args:
            title: what the step brings.
            attempts: tried in order until one succeeds: commands that all have to.

        Raises:
            SetupError: none succeeded; says the last one's telling lines and where the log is.
        """
        self._done += 1
        line = f"[{self._done}/{self._total}] {title} ..."
        started = time.monotonic()

        def show(ending: str) -> None:
            self._out.write(f"\r{line} {ending}" if self._out.isatty() else ending)
            self._out.flush()

        def tick() -> None:
            if self._out.isatty():
                show(f"{time.monotonic() - started:.0f} s")

        self._out.write(f"{line} ")
        self._out.flush()
        failure = SetupError("nothing to run")
        for commands in attempts:
            try:
                for command in commands:
                    run_logged(command, self._log, tick)
            except SetupError as error:
                failure = error
            else:
                show(f"{time.monotonic() - started:.0f} s\n")
                return
        show("failed\n")
        raise SetupError(f"{title}: {failure}")


def run_logged(command: Sequence[str], log: Path, tick: Callable[[], None] = lambda: None) -> None:
    """Run ``command`` with its output appended to ``log``.

    Args:
        command: program and arguments.
        log: file that gets the output; its folder is made.
        tick: called about once a second meanwhile.

    Raises:
        SetupError: it can't be started or its exit code is not 0.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        output.write(f"\n$ {' '.join(command)}\n".encode())
        output.flush()
        start = output.tell()
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        except OSError as error:
            raise SetupError(f"{command[0]}: {error.strerror}") from error
        try:
            while (code := wait(process)) is None:
                tick()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if code:
        said = log.read_bytes()[start:].decode(errors="replace")
        lines = "".join(f"    {line}\n" for line in telling_lines(said))
        raise SetupError(f"exit code {code}\n{lines}  log: {log}")


def wait(process: subprocess.Popen[bytes]) -> int | None:
    """Return the exit code, or None when the process still runs after a tick."""
    try:
        return process.wait(TICK_S)
    except subprocess.TimeoutExpired:
        return None


def telling_lines(output: str) -> list[str]:
    r"""Return the few lines of a failed command's output that say why it failed.

    >>> telling_lines("Collecting x\nERROR: No matching distribution found for x\n")
    ['ERROR: No matching distribution found for x']
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if any(word in line.lower() for word in TELLING)]
    return (telling or lines)[-TELLING_LINES:]


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Make ``folder`` and let one process at a time set it up; a second one waits."""
    folder.mkdir(exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.stdout.write(f"waiting for another make that sets up {folder.name} ...\n")
            sys.stdout.flush()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
