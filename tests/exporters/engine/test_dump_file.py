"""The dump's bytes: whole, or refused with a reason."""

import json
import struct
import zlib
from array import array
from typing import Any

import pytest

from vramscope.exporters.engine.dump_file import SCHEMA, DumpError, decode, encode

HEADER = {"time_s": 1.5, "requests": [{"hash": 2**64 - 1}]}
ARRAYS = [array("I", [1, 2**32 - 1]), array("B", [255]), array("I")]


def test_what_was_written_is_read() -> None:
    header, arrays = decode(encode(HEADER, ARRAYS))
    assert header == {**HEADER, "arrays": [["I", 2], ["B", 1], ["I", 0]]}
    assert arrays == ARRAYS


def test_numbers_lie_little_endian() -> None:
    assert encode({}, [array("I", [1])]).endswith(b"\x01\x00\x00\x00")


def test_truncated_anywhere_is_refused() -> None:
    whole = encode(HEADER, ARRAYS)
    for length in range(len(whole)):
        with pytest.raises(DumpError, match="truncated"):
            decode(whole[:length])


def test_any_flipped_byte_is_noticed() -> None:
    whole = encode(HEADER, ARRAYS)
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0x55
        with pytest.raises(DumpError):
            decode(bytes(damaged))


def test_newer_schema_is_named() -> None:
    whole = encode(HEADER, ARRAYS)
    newer = whole[:8] + struct.pack("<I", SCHEMA + 1) + whole[12:]
    with pytest.raises(DumpError, match=f"schema {SCHEMA + 1} is newer"):
        decode(newer)


SHAPES: tuple[Any, ...] = ({}, [1], [["I"]], [["Q", 1]], [["I", -1]], [["I", "1"]], [["I", 10**12]])


@pytest.mark.parametrize(
    "header",
    [
        b"[]",
        b"{}",
        b"not json",
        b"[" * 100_000,
        *(json.dumps({"arrays": shapes}).encode() for shapes in SHAPES),
    ],
    ids=lambda text: text[:30].decode(),
)
def test_header_of_a_hostile_writer_is_damage(header: Any) -> None:
    preamble = struct.Struct("<8sIIQI")
    total = preamble.size + len(header)
    head = preamble.pack(b"VRAMPAGE", SCHEMA, len(header), total, zlib.crc32(header))
    with pytest.raises(DumpError, match="damaged"):
        decode(head + header)
