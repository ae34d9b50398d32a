"""A dump: one engine's page table at one moment, beside its record, written when a reader asks.

Layout, little-endian, written whole under a name that readers ignore and then renamed:

======== ==================================================================================
preamble magic, schema, bytes of the header, bytes of the file, checksum of all that follows
header   JSON: the moment, pools, groups, requests, tables, and ``arrays``: type and length of each
arrays   unsigned integers, in the order of the header's ``arrays``
======== ==================================================================================

It says what the block manager holds and nothing of what the prompts say: no token, no block
hash. Two blocks of equal content are known by their numbers.
"""

import json
import struct
import sys
import zlib
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

__all__ = ["MOST_BYTES", "SUFFIX", "UNHASHED", "DumpError", "decode", "encode"]

MAGIC = b"VRAMPAGE"
SCHEMA = 1
SUFFIX = ".blocks"
"""Takes the place of the record's own."""
UNHASHED = 0xFFFFFFFF
"""For a block without a prefix hash, where another has the number of its first twin."""
MOST_BYTES = 64 * 1024 * 1024  # a reader trusts no writer with its memory

_PREAMBLE = struct.Struct("<8sIIQI")
_TYPES = ("B", "I")


class DumpError(Exception):
    """The bytes are not a whole dump that this version reads; the message says why."""


def encode(header: Mapping[str, Any], arrays: Sequence["array[int]"]) -> bytes:
    """Return the bytes of a dump.

    Args:
        header: JSON values; ``arrays`` is added to it.
        arrays: of type ``B`` (bytes) or ``I`` (32 bits).
    """
    shapes = [[numbers.typecode, len(numbers)] for numbers in arrays]
    text = json.dumps({**header, "arrays": shapes}).encode()
    body = b"".join([text, *(_little_endian(numbers).tobytes() for numbers in arrays)])
    total = _PREAMBLE.size + len(body)
    return _PREAMBLE.pack(MAGIC, SCHEMA, len(text), total, zlib.crc32(body)) + body


def decode(data: bytes) -> tuple[dict[str, Any], list["array[int]"]]:
    """Return the header and the arrays.

    Raises:
        DumpError: not a dump, a newer schema, damaged, or truncated.
    """
    if len(data) < _PREAMBLE.size:
        raise DumpError(f"truncated: {len(data)} bytes, a dump has at least {_PREAMBLE.size}")
    magic, schema, header_bytes, total, crc = _PREAMBLE.unpack_from(data)
    if magic != MAGIC:
        raise DumpError(f"not a vramscope dump: starts with {magic!r}, want {MAGIC!r}")
    if schema > SCHEMA:
        raise DumpError(
            f"schema {schema} is newer than {SCHEMA}, the newest this version reads: "
            "upgrade vramscope where the reader runs"
        )
    if len(data) != total:
        raise DumpError(f"truncated: {len(data)} of {total} bytes")
    body = memoryview(data)[_PREAMBLE.size :]
    if zlib.crc32(body) != crc:
        raise DumpError("damaged: the checksum is wrong")
    try:
        header = json.loads(bytes(body[:header_bytes]))
    except (ValueError, RecursionError) as error:
        raise DumpError(f"damaged: header is not JSON: {error}") from error
    shapes = header.get("arrays") if isinstance(header, dict) else None
    if not _are_shapes(shapes):
        raise DumpError("damaged: the header does not say what arrays follow")
    arrays = []
    at = header_bytes
    for kind, length in shapes:
        numbers = array(kind)
        end = at + length * numbers.itemsize
        if end > len(body):
            raise DumpError(f"damaged: its arrays don't fit {total} bytes")
        numbers.frombytes(body[at:end])
        arrays.append(_little_endian(numbers))
        at = end
    return header, arrays


def _are_shapes(shapes: object) -> TypeGuard[list[tuple[str, int]]]:
    return isinstance(shapes, list) and all(
        isinstance(shape, list)
        and len(shape) == 2
        and shape[0] in _TYPES
        and isinstance(shape[1], int)
        and shape[1] >= 0
        for shape in shapes
    )


def _little_endian(numbers: "array[int]") -> "array[int]":
    """Return the numbers in the file's byte order from this machine's, or the other way."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers
