"""The cell that is written after each step: a row of doubles, and the newest request events.

``events in the ring, doubles, events``. Most steps have an event or two: in the row's own cell
they cost the engine no write of their own, and go to the ring many at a time.
"""

import struct
import zlib
from typing import NamedTuple

from vramscope.exporters.engine import record
from vramscope.exporters.engine.record import CELL_TAIL, EVENT, Event, RecordError

__all__ = ["Step", "StepCell", "decode_step"]

WORD = 8
ROW_WORDS = (record.CELL_HEAD.size + record.RING_POSITION.size) // WORD
"""Before the doubles."""


class StepCell:
    """The cell's bytes, changed in place: the engine waits for it.

    All of it but the events lies in words of eight bytes, set one by one: ``struct`` is not in
    the CPU's caches after a model's step, and what is costs a third.

    Args:
        fields: doubles of the row.
        most_events: that it holds.

    Attributes:
        row: the doubles, to be set.
        ring_events: events that are in the ring.
        recent: events that are here.
    """

    def __init__(self, fields: int, most_events: int) -> None:
        self.ring_events = self.recent = 0
        self._most_events = most_events
        self._events_start = self._end = (ROW_WORDS + fields) * WORD
        self._bytes = bytearray(self._end + most_events * EVENT.size + CELL_TAIL.size)
        self._words = memoryview(self._bytes).cast("Q")
        doubles = memoryview(self._bytes).cast("d")
        self.row = doubles[ROW_WORDS : ROW_WORDS + fields]
        self._fit()

    @property
    def is_full(self) -> bool:
        """Whether its events must go to the ring before another is added."""
        return self.recent == self._most_events

    def add(  # an event's own fields
        self,
        request: int,
        time_s: float,
        kind: int,
        tier: int,
        adapter: int,
        tokens: int,
        detail: int,
    ) -> None:
        """Append an event."""
        number = self.ring_events + self.recent
        EVENT.pack_into(
            self._bytes, self._end, number, request, time_s, kind, tier, 0, adapter, tokens, detail
        )
        self.recent += 1
        self._end += EVENT.size
        self._fit()

    def take_events(self) -> list[bytes]:
        """Return its events packed, as ones that are in the ring from now on."""
        events = bytes(self._bytes[self._events_start : self._end])
        self.ring_events += self.recent
        self.recent = 0
        self._end = self._events_start
        self._fit()
        return [events[at : at + EVENT.size] for at in range(0, len(events), EVENT.size)]

    def encode(self, sequence: int) -> memoryview:
        """Return the cell, until it is changed again."""
        words, tail = self._words, self._tail
        words[0] = words[tail + 1] = sequence
        # As ``record.checksum``, without the call.
        words[tail] = zlib.adler32(self._payload, sequence & 0xFFFFFFFF)
        return self._cell

    def _fit(self) -> None:
        """Follow ``_end``."""
        head = record.CELL_HEAD.size
        whole = memoryview(self._bytes)
        self._payload = whole[head : self._end]
        self._cell = whole[: self._end + CELL_TAIL.size]
        self._tail = self._end // WORD
        self._words[1] = self._end - head
        self._words[2] = self.ring_events


class Step(NamedTuple):
    """A step's cell as read."""

    values: tuple[float, ...]
    ring_events: int
    recent: tuple[Event, ...]


def decode_step(payload: bytes, fields: int) -> Step:
    """Read what ``StepCell`` has written.

    Raises:
        RecordError: it is not of so many fields and some events.
    """
    start = record.RING_POSITION.size + WORD * fields
    if len(payload) < start or (len(payload) - start) % EVENT.size:
        raise RecordError(
            f"damaged: step of {len(payload)} bytes, want {start} and {EVENT.size} an event"
        )
    ring_events, *values = struct.unpack_from(f"<Q{fields}d", payload)
    recent = tuple(map(Event.of, EVENT.iter_unpack(payload[start:])))
    return Step(tuple(values), ring_events, recent)
