"""The record: one file a process, written by the probe and read by anyone on the host.

Layout, little-endian. Offsets and capacities are in the preamble, so that a reader follows
the file and not its own constants.

======== ==================================================================================
preamble magic, schema, file size, place of each region, checksum
header   cell: JSON, written once: who the engine is, and the names of the fields of step and scan
state    cell: JSON, written when it changes: capabilities, error, adapters
step     cell: doubles in the order of the header's ``fields``, written after each step, and the
         newest request events (see ``step_cell``)
scan     cell: doubles in the order of ``scan_fields``, written some times a second: of one moment
ring     the request events before those, of fixed size; slot = event number modulo slots
======== ==================================================================================

A cell is ``sequence, length, payload, checksum, sequence``: a reader that meets a write in
progress sees two different sequence numbers or a wrong checksum, and reads again. Adler-32 and
not CRC-32, whose tables a step has thrown out of the CPU's caches: it need tell no more than
whether a write was whole. A plain file and ``pwrite`` rather than a memory map: a map of a
truncated file kills its writer with SIGBUS.
"""

import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from typing import Any, NamedTuple

__all__ = [
    "CELL_HEAD",
    "CELL_TAIL",
    "EVENT",
    "PREAMBLE_BYTES",
    "SCHEMA",
    "SUFFIX",
    "Event",
    "EventKind",
    "Layout",
    "RecordError",
    "Region",
    "RowEncoder",
    "Tier",
    "decode_cell",
    "decode_event",
    "decode_preamble",
    "encode_cell",
    "encode_event",
    "encode_preamble",
    "request_hash",
]

MAGIC = b"VRAMSCOP"
SCHEMA = 3
SUFFIX = ".vramscope"
MOST_BYTES = 16 * 1024 * 1024  # a reader trusts no writer with its memory

_PREAMBLE = struct.Struct("<8sIIQ" + "QQ" * 5)
_CRC = struct.Struct("<I")
PREAMBLE_BYTES = _PREAMBLE.size + _CRC.size

CELL_HEAD = struct.Struct("<QQ")
CELL_TAIL = struct.Struct("<QQ")
CELL_OVERHEAD = CELL_HEAD.size + CELL_TAIL.size

EVENT = struct.Struct("<QQdBBHIII")
EVENT_BYTES = EVENT.size + _CRC.size
MOST_RECENT_EVENTS = 16
RING_POSITION = struct.Struct("<Q")


class RecordError(Exception):
    """The bytes are not a whole record that this version reads; the message says why."""


class Tier(IntEnum):
    """Where an adapter was."""

    NONE = 0
    GPU = 1
    CPU = 2
    DISK = 3


class EventKind(IntEnum):
    """What happened to a request, and what ``tokens`` and ``detail`` then mean."""

    QUEUED = 1
    """tokens: prompt tokens; detail: tokens asked for at most."""
    FIRST_SCHEDULED = 2
    """tokens: prompt tokens found in the prefix cache."""
    PREEMPTED = 3
    """tokens: computed tokens thrown away; detail: index into ``PREEMPTION_REASONS``."""
    RESUMED = 4
    """tokens: tokens found again in the prefix cache."""
    FIRST_TOKEN = 5
    FINISHED = 6
    """tokens: output tokens."""
    ABORTED = 7
    """tokens: output tokens."""
    ADAPTER_APPLIED = 8
    """From rank 0's worker, at first schedule: ``tier`` is where the adapter was just before."""
    ADAPTER_LOADED = 9
    """From a worker: ``tier`` is where it came from; tokens: microseconds it took; no request."""


class Event(NamedTuple):
    """One event: ``time_s`` by the host's monotonic clock; ``adapter`` is vLLM's number or 0."""

    number: int
    request: int
    time_s: float
    kind: int
    tier: int = 0
    adapter: int = 0
    tokens: int = 0
    detail: int = 0

    @classmethod
    def of(cls, packed: Sequence[Any]) -> "Event":
        """Return what ``EVENT`` has unpacked."""
        number, request, time_s, kind, tier, _, adapter, tokens, detail = packed
        return cls(number, request, time_s, kind, tier, adapter, tokens, detail)


@dataclass(frozen=True, slots=True)
class Region:
    """Where a part of the record lies, in bytes."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Layout:
    """What the preamble says."""

    file_bytes: int
    header: Region
    state: Region
    step: Region
    scan: Region
    ring: Region

    @classmethod
    def of(
        cls, header_bytes: int, fields: int, scan_fields: int, ring_slots: int, state_bytes: int
    ) -> "Layout":
        """Lay out a record for a header, a state of at most ``state_bytes``, and a ring."""
        regions = []
        offset = PREAMBLE_BYTES
        for size in (
            header_bytes + CELL_OVERHEAD,
            state_bytes + CELL_OVERHEAD,
            RING_POSITION.size
            + fields * 8
            + recent_events(ring_slots) * EVENT.size
            + CELL_OVERHEAD,
            scan_fields * 8 + CELL_OVERHEAD,
            ring_slots * EVENT_BYTES,
        ):
            offset = -(-offset // 64) * 64  # a cache line: neighbours never share one
            regions.append(Region(offset, size))
            offset += size
        return cls(offset, *regions)

    @property
    def ring_slots(self) -> int:
        """Events the ring holds before the oldest is overwritten."""
        return self.ring.size // EVENT_BYTES


def encode_preamble(layout: Layout) -> bytes:
    """Return the first bytes of a record."""
    regions = (layout.header, layout.state, layout.step, layout.scan, layout.ring)
    places = [number for region in regions for number in (region.offset, region.size)]
    body = _PREAMBLE.pack(MAGIC, SCHEMA, len(regions), layout.file_bytes, *places)
    return body + _CRC.pack(zlib.crc32(body))


def decode_preamble(data: bytes, file_bytes: int) -> Layout:
    """Read the first ``PREAMBLE_BYTES`` of a file of ``file_bytes``.

    Raises:
        RecordError: not a record, another schema, damaged, or truncated.
    """
    if len(data) < PREAMBLE_BYTES:
        raise RecordError(f"truncated: {file_bytes} bytes, a record has at least {PREAMBLE_BYTES}")
    magic, schema, _, total, *places = _PREAMBLE.unpack_from(data)
    if magic != MAGIC:
        raise RecordError(f"not a vramscope record: starts with {magic!r}, want {MAGIC!r}")
    if schema > SCHEMA:
        # Before the checksum: a newer schema may lay out the rest differently.
        raise RecordError(
            f"schema {schema} is newer than {SCHEMA}, the newest this version reads: "
            "upgrade vramscope where the exporter or controller runs"
        )
    if schema < SCHEMA:
        raise RecordError(
            f"schema {schema} is older than {SCHEMA}, the oldest this version reads: "
            "upgrade vramscope in the engine's environment and restart the engine"
        )
    (crc,) = _CRC.unpack_from(data, _PREAMBLE.size)
    if crc != zlib.crc32(data[: _PREAMBLE.size]):
        raise RecordError("damaged: the preamble's checksum is wrong")
    if file_bytes < total:
        raise RecordError(f"truncated: {file_bytes} of {total} bytes")
    header, state, step, scan, ring = regions = [
        Region(offset, size) for offset, size in zip(places[::2], places[1::2], strict=True)
    ]
    if total > MOST_BYTES or any(region.offset + region.size > total for region in regions):
        raise RecordError(f"damaged: its parts don't fit {total} bytes, or it is over {MOST_BYTES}")
    return Layout(total, header, state, step, scan, ring)


def recent_events(ring_slots: int) -> int:
    """Return how many events a step's cell holds at most: then they go to the ring together.

    A divisor of its slots, so that they never run over its end.
    """
    return math.gcd(MOST_RECENT_EVENTS, ring_slots)


def checksum(sequence: int, payload: bytes | memoryview) -> int:
    """Return what a cell has after its payload."""
    return zlib.adler32(payload, sequence & 0xFFFFFFFF)


def encode_cell(sequence: int, payload: bytes) -> bytes:
    """Frame a payload for one ``pwrite``."""
    tail = CELL_TAIL.pack(checksum(sequence, payload), sequence)
    return CELL_HEAD.pack(sequence, len(payload)) + payload + tail


class RowEncoder:
    """Frames rows of doubles as ``encode_cell`` does.

    Args:
        fields: doubles of a row.
    """

    def __init__(self, fields: int) -> None:
        self._doubles = struct.Struct(f"<{fields}d")

    def encode(self, sequence: int, values: Sequence[float]) -> bytes:
        """Return the cell."""
        return encode_cell(sequence, self._doubles.pack(*values))


def decode_cell(data: bytes) -> tuple[int, bytes] | None:
    """Return a cell's sequence and payload, or None when a write is in progress."""
    if len(data) < CELL_OVERHEAD:
        return None
    sequence, length = CELL_HEAD.unpack_from(data)
    end = CELL_HEAD.size + length
    if sequence == 0 or end + CELL_TAIL.size > len(data):
        return None
    payload = data[CELL_HEAD.size : end]
    whole = CELL_TAIL.unpack_from(data, end) == (checksum(sequence, payload), sequence)
    return (sequence, payload) if whole else None


def encode_event(body: bytes) -> bytes:
    """Return a ring slot of an event that ``EVENT`` has packed."""
    return body + _CRC.pack(zlib.crc32(body))


def decode_event(data: bytes) -> Event | None:
    """Return the event of a slot, or None when it was being overwritten."""
    if _CRC.unpack_from(data, EVENT.size)[0] != zlib.crc32(data[: EVENT.size]):
        return None
    return Event.of(EVENT.unpack_from(data))


def request_hash(external_id: str) -> int:
    """Return the 64-bit name of a request, from the id its client knows.

    vLLM makes ``cmpl-<id>-<n>`` and ``chatcmpl-<id>`` of the ``X-Request-Id`` header.
    """
    return int.from_bytes(blake2b(external_id.encode(), digest_size=8).digest(), "little")
