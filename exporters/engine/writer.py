"""Writes one record: in the engine's process, a few microseconds a step, standard library only."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

from vramscope.exporters.engine import dump_file, lock, record, rundir
from vramscope.exporters.engine.step_cell import StepCell

__all__ = ["RecordWriter"]

RING_SLOTS = 4096
STATE_BYTES = 256 * 1024
ALWAYS_SAID = ("capabilities", "error", "adapters")
"""Of a state that is too long for its place, which more of it would run over."""


class RecordWriter:
    """One process's record. Not thread-safe: the engine's loop is its only caller.

    The file is written whole under a name readers ignore, locked, then renamed: a reader never
    meets half a record. It is removed on ``close`` and when the process ends; after a kill its
    lock is gone, which is how readers know, and the next writer in the folder removes it.

    Attributes:
        row: the values of the next step, in the order of ``fields``, as doubles to be set.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        header: Mapping[str, Any],
        fields: Sequence[str],
        scan_fields: Sequence[str] = (),
        ring_slots: int = RING_SLOTS,
        group: str | None = None,
    ) -> None:
        self.fields, self.scan_fields = tuple(fields), tuple(scan_fields)
        names = {"fields": self.fields, "scan_fields": self.scan_fields}
        text = json.dumps({**header, **names}).encode()
        self.layout = record.Layout.of(
            len(text), len(self.fields), len(self.scan_fields), ring_slots, STATE_BYTES
        )
        self._step = StepCell(len(self.fields), record.recent_events(ring_slots))
        self.row = self._step.row
        self._step_offset = self.layout.step.offset
        self._scan = record.RowEncoder(len(self.scan_fields))
        self._sequence = self._scan_sequence = 0
        self._state_sequence = 0
        stem = f"{_safe(name)}.{os.getpid()}"
        self.path = folder / f"{stem}{record.SUFFIX}"
        self._group = group
        folder_fd = rundir.open_folder(folder)
        try:
            rundir.remove_dead_records(folder_fd)
            self._fd = self._create(folder_fd, f".{stem}.new")
            os.pwrite(self._fd, record.encode_preamble(self.layout), 0)
            os.pwrite(self._fd, record.encode_cell(1, text), self.layout.header.offset)
            self.write_state({})
            os.rename(f".{stem}.new", self.path.name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
        finally:
            os.close(folder_fd)
        # Not atexit: vLLM's processes are multiprocessing's, which end without it.
        self._at_exit = Finalize(None, _remove, (self.path,), exitpriority=0)

    def _create(self, folder_fd: int, name: str) -> int:
        fd = rundir.create_file(folder_fd, name, self._group)
        try:
            os.posix_fallocate(fd, 0, self.layout.file_bytes)  # a full disk shows here, not later
            lock.take(fd)
        except BaseException:
            os.close(fd)
            os.unlink(name, dir_fd=folder_fd)
            raise
        return fd

    def add_event(  # an event's own fields
        self,
        request: int,
        time_s: float,
        kind: int,
        tier: int = 0,
        adapter: int = 0,
        tokens: int = 0,
        detail: int = 0,
    ) -> None:
        """Add an event, which the next ``write_step`` makes visible."""
        step = self._step
        if step.is_full:
            self._write_events()
        step.add(request, time_s, kind, tier, adapter, min(tokens, 2**32 - 1), detail)

    def write_step(self, values: Sequence[float] = ()) -> None:
        """Write a step and the events before it: the row as it is now.

        Args:
            values: put first into the row, from its beginning; the others keep theirs.
        """
        for index, value in enumerate(values):
            self.row[index] = value
        self._sequence = sequence = self._sequence + 1
        os.pwrite(self._fd, self._step.encode(sequence), self._step_offset)

    def write_scan(self, values: Sequence[float]) -> None:
        """Write what is looked at some times a second, all of one moment.

        Args:
            values: in the order of ``scan_fields``.
        """
        self._scan_sequence += 1
        cell = self._scan.encode(self._scan_sequence, values)
        os.pwrite(self._fd, cell, self.layout.scan.offset)

    def _write_events(self) -> None:
        """Move the step's events to the ring. A reader finds them in one or the other."""
        slot = self._step.ring_events % self.layout.ring_slots
        events = b"".join(map(record.encode_event, self._step.take_events()))
        os.pwrite(self._fd, events, self.layout.ring.offset + slot * record.EVENT_BYTES)

    def write_state(self, state: Mapping[str, Any]) -> None:
        """Replace the state; call it when it has changed, not each step."""
        text = json.dumps(state).encode()
        if len(text) > STATE_BYTES:  # thousands of adapters: the rest still matters
            rest = {name: state[name] for name in ALWAYS_SAID if name in state}
            text = json.dumps({**rest, "adapters_omitted": True}).encode()
        self._state_sequence += 1
        cell = record.encode_cell(self._state_sequence, text)
        os.pwrite(self._fd, cell, self.layout.state.offset)

    def is_asked(self) -> bool:
        """Whether a reader asks for a dump."""
        return lock.is_asked(self._fd)

    def write_dump(self, data: bytes) -> None:
        """Put a dump beside the record, whole, in place of the one before.

        Raises:
            OSError: it can't be written; the one before is still there.
        """
        folder_fd = rundir.open_folder(self.path.parent)
        try:
            name = self.path.with_suffix(dump_file.SUFFIX).name
            new = f".{name}.new"
            with os.fdopen(rundir.create_file(folder_fd, new, self._group), "wb") as file:
                try:
                    file.write(data)
                except OSError:
                    os.unlink(new, dir_fd=folder_fd)
                    raise
            os.rename(new, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
        finally:
            os.close(folder_fd)

    def close(self) -> None:
        """Remove the files and let go of the lock."""
        self._at_exit()
        os.close(self._fd)


def _remove(path: Path) -> None:
    """Remove a record and the dump beside it."""
    path.unlink(missing_ok=True)
    path.with_suffix(dump_file.SUFFIX).unlink(missing_ok=True)


def _safe(name: str) -> str:
    """Return a file name: what isn't a letter, digit, dot, dash or underscore becomes a dash."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", name).lstrip(".") or "engine"
