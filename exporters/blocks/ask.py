"""Asks an engine for its page table, and waits for it."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from vramscope.exporters.blocks.from_dump import engine_name, page_table
from vramscope.exporters.blocks.page_table import PageTable
from vramscope.exporters.engine import dump_file, record
from vramscope.exporters.engine.host import record_paths
from vramscope.exporters.engine.reader import RecordReader
from vramscope.exporters.errors import VramscopeError

__all__ = ["PageTableError", "ask", "find_engine"]

POLL_PERIOD_S = 0.02
OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class PageTableError(VramscopeError):
    """There is no page table to show; the message says why and what to do."""


def find_engine(folder: Path, name: str) -> Path:
    """Return the path of the record of a live engine.

    Args:
        folder: the run directory.
        name: the engine's id, with ``.dp1`` and so on for a data-parallel rank that is not 0.

    Raises:
        PageTableError: there is none of this name, or more than one.
    """
    try:
        live = sorted(_live_engines(folder))
    except OSError as error:
        raise PageTableError(
            f"{folder}: {error.strerror}: want a run directory of vLLM engines "
            "with the probe (VRAMSCOPE_RUN_DIR, --run-dir)"
        ) from error
    found = [path for engine, path in live if engine == name]
    if len(found) == 1:
        return found[0]
    if found:
        where = ", ".join(str(path) for path in found)
        raise PageTableError(
            f"{name}: {len(found)} engines have this id: {where}: "
            "want --run-dir with the folder of one, or an id of its own each (VRAMSCOPE_ENGINE)"
        )
    known = ", ".join(engine for engine, _ in live)
    raise PageTableError(
        f"{name}: no such engine in {folder}: "
        + (f"want one of {known}" if known else "no vLLM engine with the probe runs")
    )


def _live_engines(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in record_paths(folder):
        try:
            with closing(RecordReader(path)) as reader:
                if reader.header.get("role") == "engine" and reader.is_alive():
                    yield engine_name(reader.header), Path(path)
        except (record.RecordError, OSError):
            continue  # gone meanwhile, another user's, or no record of ours


def ask(
    path: Path,
    timeout_s: float,
    say: Callable[[str], object] = sys.stderr.write,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> PageTable:
    """Ask the engine of a record for its page table; wait until it has written it.

    Args:
        path: of the record.
        timeout_s: how long to wait.
        say: told what is waited for, where that may take long.
        clock: the host's monotonic clock, seconds.
        sleep: waits for some seconds.

    Raises:
        PageTableError: it didn't write one, or what it wrote can't be read.
    """
    try:
        with closing(RecordReader(str(path))) as reader:
            _want_capability(path, reader.state())
            asked_s = clock()
            reader.ask()
            if not reader.step().get("busy"):
                say(
                    f"{engine_name(reader.header)} is idle: waiting up to {timeout_s:g} s "
                    "for its next step, in which it can be seen\n"
                )
            header, arrays = _wait(path, reader, asked_s, timeout_s, clock, sleep)
            if refused := header.get("refused"):
                raise PageTableError(f"{path}: too large to copy: {refused}")
            return page_table(reader.header, header, arrays)
    except (record.RecordError, dump_file.DumpError) as error:
        raise PageTableError(f"{path}: {error}") from error
    except OSError as error:
        raise PageTableError(
            f"{path}: {error.strerror}: want a record that this user can read"
        ) from error


def _want_capability(path: Path, state: dict[str, Any]) -> None:
    if state.get("capabilities", {}).get("page_table"):
        return
    why = (
        state.get("page_table_error") or state.get("error") or "its probe is of an older vramscope"
    )
    raise PageTableError(f"{path}: the engine can't show its page table: {why}")


def _wait(
    path: Path,
    reader: RecordReader,
    asked_s: float,
    timeout_s: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> tuple[dict[str, Any], list[Any]]:
    """Return the first dump of a moment after ``asked_s``."""
    dump = path.with_suffix(dump_file.SUFFIX)
    seen = None
    while True:
        try:
            stat = dump.lstat()
        except FileNotFoundError:
            stat = None
        if stat is not None and (stat.st_ino, stat.st_mtime_ns) != seen:
            seen = stat.st_ino, stat.st_mtime_ns
            header, arrays = dump_file.decode(_read(dump))
            if float(header.get("time_s", 0)) >= asked_s:
                return header, arrays
        if not reader.is_alive():
            raise PageTableError(f"{path}: the engine ended before it was seen")
        if clock() - asked_s > timeout_s:
            raise PageTableError(f"{path}: {_why_not(reader, timeout_s)}")
        sleep(POLL_PERIOD_S)


def _why_not(reader: RecordReader, waited_s: float) -> str:
    if reader.step().get("busy"):
        return (
            f"no page table after {waited_s:g} s, though the engine has work: its step takes "
            "long, or it hangs: try a longer --timeout"
        )
    return (
        f"no page table after {waited_s:g} s: the engine is idle, and looks for requests only in "
        "a step: send it a request (a completion of one token will do) while this waits"
    )


def _read(path: Path) -> bytes:
    with os.fdopen(os.open(path, OPEN_FLAGS), "rb") as file:
        return file.read(dump_file.MOST_BYTES + 1)
