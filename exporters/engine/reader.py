"""Reads one record. A reader takes no lock and writes nothing: it can't disturb the engine."""

import json
import os
import struct
from collections.abc import Iterable, Mapping
from typing import Any

from vramscope.exporters.engine import lock, record
from vramscope.exporters.engine.record import Event, RecordError, Region
from vramscope.exporters.engine.step_cell import Step, decode_step

__all__ = ["RecordReader"]

TRIES = 8


class RecordReader:
    """An open record; ``close`` it.

    Raises:
        RecordError: on opening or reading: not a record, newer, truncated or damaged.
        OSError: it can't be opened; a link is not followed.
    """

    def __init__(self, name: str, dir_fd: int | None = None) -> None:
        self._fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
        try:
            data = os.pread(self._fd, record.PREAMBLE_BYTES, 0)
            self.layout = record.decode_preamble(data, os.fstat(self._fd).st_size)
            self.header: dict[str, Any] = self._json(self.layout.header, "header")
            _want_numbers(self.header, "dp_rank", "rank")
            self._fields = tuple(self.header["fields"])
            self._scan = _Row(self.header["scan_fields"])
        except (KeyError, TypeError) as error:
            os.close(self._fd)
            raise RecordError(f"damaged: header without {error}") from error
        except BaseException:
            os.close(self._fd)
            raise

    def is_alive(self) -> bool:
        """Whether the writer's process lives."""
        return lock.is_held(self._fd)

    def pid(self) -> int | None:
        """Return the writer's pid in this process's pid namespace; None when not visible here."""
        return lock.holder(self._fd)

    def step(self) -> dict[str, float]:
        """Return the last step by field name; empty before the first."""
        step = self._read_step()
        return {} if step is None else dict(zip(self._fields, step.values, strict=True))

    def scan(self) -> dict[str, float]:
        """Return the last scan by field name; empty before the first."""
        return self._scan.read(self._cell(self.layout.scan, "scan"), "scan")

    def state(self) -> dict[str, Any]:
        """Return capabilities, error and adapters as last written."""
        return self._json(self.layout.state, "state")

    def events(self, first: int | None = None) -> tuple[list[Event], int, int]:
        """Return events, how many are lost, and the number of the next one to come.

        Args:
            first: number of the first event not seen yet; None: of the oldest still there.
        """
        step = self._read_step()
        if step is None:
            return [], 0, first or 0
        slots = self.layout.ring_slots
        oldest = max(0, step.ring_events - slots)
        start = oldest if first is None else max(first, oldest)
        lost = 0 if first is None else start - first
        found = []
        for number in range(start, step.ring_events):
            offset = self.layout.ring.offset + number % slots * record.EVENT_BYTES
            event = record.decode_event(os.pread(self._fd, record.EVENT_BYTES, offset))
            if event is not None and event.number == number:
                found.append(event)
            else:
                lost += 1  # the writer has come round meanwhile
        found += [event for event in step.recent if event.number >= start]
        return found, lost, step.ring_events + len(step.recent)

    def ask(self) -> None:
        """Ask the writer for a dump, until this is closed.

        Raises:
            OSError: the file system has no such locks.
        """
        lock.ask(self._fd)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def _read_step(self) -> Step | None:
        payload = self._cell(self.layout.step, "step")
        return None if payload is None else decode_step(payload, len(self._fields))

    def _cell(self, region: Region, what: str) -> bytes | None:
        """Return a cell's payload, or None when nothing was written yet."""
        for _ in range(TRIES):
            data = os.pread(self._fd, region.size, region.offset)
            if len(data) < region.size:
                raise RecordError(
                    f"truncated: {what} ends after {len(data)} of {region.size} bytes"
                )
            if not any(data[: record.CELL_OVERHEAD]):
                return None
            cell = record.decode_cell(data)
            if cell is not None:
                return cell[1]
        raise RecordError(f"damaged: the {what}'s checksum is wrong, {TRIES} reads in a row")

    def _json(self, region: Region, what: str) -> dict[str, Any]:
        cell = self._cell(region, what)
        if cell is None:
            raise RecordError(f"damaged: no {what}")
        try:
            value = json.loads(cell)
        except (ValueError, RecursionError) as error:
            raise RecordError(f"damaged: {what} is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise RecordError(f"damaged: {what} is {type(value).__name__}, want an object")
        return value


class _Row:
    """The doubles of a cell, by name."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(names)
        self._doubles = struct.Struct(f"<{len(self._names)}d")

    def read(self, cell: bytes | None, what: str) -> dict[str, float]:
        if cell is None:
            return {}
        if len(cell) != self._doubles.size:
            raise RecordError(f"damaged: {what} of {len(cell)} bytes, want {self._doubles.size}")
        return dict(zip(self._names, self._doubles.unpack(cell), strict=True))


def _want_numbers(header: Mapping[str, Any], *names: str) -> None:
    """Refuse a header in which one of these is there and no number."""
    for name in names:
        if not isinstance(header.get(name, 0), int):
            raise RecordError(f"damaged: header's {name} is {header[name]!r}, want a number")
