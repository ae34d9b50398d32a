"""The record: one file a process, written by the probe and read by anyone on the host.

Layout, little-endian. Offsets and capacities are in the preamble, so that a reader follows
the file and not its own constants.

======== ==================================================================================
preamble magic, schema, file size, place of each region, checksum
header   cell: JSON, written once: who the engine is, and the names of the fields of step and scan
state    cell: JSON, written when it changes: capabilities, error, adapters
step     cell: doubles in the order of the header's ``fields``, written after each step
scan     cell: doubles in the order of ``scan_fields``, written some times a second: of one moment
ring     fixed-size request events; slot = event number modulo slots
======== ==================================================================================

A cell is ``sequence, length, checksum, payload, sequence``: a reader that meets a write in
progress sees two different sequence numbers or a wrong checksum, and reads again. A plain file
and ``pwrite`` rather than a memory map: a map of a truncated file kills its writer with SIGBUS.
"""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from typing import NamedTuple

__all__ = [
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
SCHEMA = 2
SUFFIX = ".vramscope"
MOST_BYTES = 16 * 1024 * 1024  # a reader trusts no writer with its memory

_PREAMBLE = struct.Struct("<8sIIQ" + "QQ" * 5)
_CRC = struct.Struct("<I")
PREAMBLE_BYTES = _PREAMBLE.size + _CRC.size

_CELL_HEAD = struct.Struct("<QII")
_CELL_TAIL = struct.Struct("<Q")
CELL_OVERHEAD = _CELL_HEAD.size + _CELL_TAIL.size

EVENT = struct.Struct("<QQdBBHIII")
EVENT_BYTES = EVENT.size + _CRC.size


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
            fields * 8 + CELL_OVERHEAD,
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


def encode_cell(sequence: int, payload: bytes) -> bytes:
    """Frame a payload for one ``pwrite``."""
    head = _CELL_HEAD.pack(sequence, len(payload), zlib.crc32(payload, sequence & 0xFFFFFFFF))
    return head + payload + _CELL_TAIL.pack(sequence)


class RowEncoder:
    """Frames rows of doubles as ``encode_cell`` does, in one go: the engine waits for it.

    Args:
        fields: doubles of a row.
    """

    def __init__(self, fields: int) -> None:
        self._bytes = 8 * fields
        self._doubles = struct.Struct(f"<{fields}d")
        self._cell = struct.Struct(f"{_CELL_HEAD.format}{self._bytes}sQ")

    def encode(self, sequence: int, values: Sequence[float]) -> bytes:
        """Return the cell."""
        row = self._doubles.pack(*values)
        checksum = zlib.crc32(row, sequence & 0xFFFFFFFF)
        return self._cell.pack(sequence, self._bytes, checksum, row, sequence)


def decode_cell(data: bytes) -> tuple[int, bytes] | None:
    """Return a cell's sequence and payload, or None when a write is in progress."""
    if len(data) < CELL_OVERHEAD:
        return None
    sequence, length, crc = _CELL_HEAD.unpack_from(data)
    end = _CELL_HEAD.size + length
    if sequence == 0 or end + _CELL_TAIL.size > len(data):
        return None
    payload = data[_CELL_HEAD.size : end]
    if _CELL_TAIL.unpack_from(data, end)[0] != sequence:
        return None
    return (sequence, payload) if zlib.crc32(payload, sequence & 0xFFFFFFFF) == crc else None


def encode_event(event: tuple[int, int, float, int, int, int, int, int]) -> bytes:
    """Return one ring slot of an ``Event``, or of its fields as a plain tuple."""
    number, request, time_s, kind, tier, adapter, tokens, detail = event
    body = EVENT.pack(number, request, time_s, kind, tier, 0, adapter, tokens, detail)
    return body + _CRC.pack(zlib.crc32(body))


def decode_event(data: bytes) -> Event | None:
    """Return the event of a slot, or None when it was being overwritten."""
    if _CRC.unpack_from(data, EVENT.size)[0] != zlib.crc32(data[: EVENT.size]):
        return None
    number, request, time_s, kind, tier, _, adapter, tokens, detail = EVENT.unpack_from(data)
    return Event(number, request, time_s, kind, tier, adapter, tokens, detail)


def request_hash(external_id: str) -> int:
    """Return the 64-bit name of a request, from the id its client knows.

    vLLM makes ``cmpl-<id>-<n>`` and ``chatcmpl-<id>`` of the ``X-Request-Id`` header.
    """
    return int.from_bytes(blake2b(external_id.encode(), digest_size=8).digest(), "little")
