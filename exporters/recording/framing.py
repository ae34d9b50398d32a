"""The bytes of a recording.

A first line names the format. Then frames: length and CRC-32 of the payload, little-endian, then
the payload. The first payload is the header, JSON. Each further one is the next piece of one zlib
stream, flushed: a refresh, as JSON. So a file that ends in the middle of a frame is readable up to
the frame before. zlib and JSON, since they are in the standard library and hold no code.
"""

import json
import struct
import zlib
from typing import Any

from vramscope.exporters.errors import VramscopeError

__all__ = [
    "FRAME_HEAD",
    "MAGIC",
    "MOST_FRAME_BYTES",
    "RecordingError",
    "check_magic",
    "frame",
    "parse_json",
    "read_head",
]

FORMAT = 1
MAGIC_NAME = b"vramscope-recording "
MAGIC = MAGIC_NAME + b"%d\n" % FORMAT
FRAME_HEAD = struct.Struct("<II")
MOST_FRAME_BYTES = 16 << 20
"""Of a payload, packed or not: a hundred times what a host of 64 engines and 16 GPUs takes."""


class RecordingError(VramscopeError):
    """A recording can't be read or written. The message names the file and the place in it."""


def check_magic(line: bytes) -> None:
    """Check a file's first ``len(MAGIC)`` bytes.

    Raises:
        RecordingError: it is something else, or newer.
    """
    if line == MAGIC:
        return
    number = line.removeprefix(MAGIC_NAME).strip()
    if line.startswith(MAGIC_NAME) and number.isdigit() and int(number) > FORMAT:
        raise RecordingError(
            f"format {int(number)} is newer than {FORMAT}, the newest this version reads: "
            "upgrade vramscope"
        )
    raise RecordingError(f"not a vramscope recording: starts with {line!r}, want {MAGIC!r}")


def frame(payload: bytes) -> bytes:
    """Return a payload with its head."""
    return FRAME_HEAD.pack(len(payload), zlib.crc32(payload)) + payload


def read_head(head: bytes) -> tuple[int, int]:
    """Return length and checksum.

    Raises:
        RecordingError: the length is none that a recorder writes.
    """
    length, crc = FRAME_HEAD.unpack(head)
    if not 0 < length <= MOST_FRAME_BYTES:
        raise RecordingError(f"a frame of {length} bytes, want 1 to {MOST_FRAME_BYTES}")
    return length, crc


def parse_json(text: bytes) -> Any:
    """Return what the JSON says.

    Raises:
        RecordingError: it is none.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"not JSON: {error}") from error
