"""Reads a recording, refresh by refresh, from its beginning: what went before is part of a page."""

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from vramscope.exporters.recording.codec import CodecError, Decoder, Schema, Tree
from vramscope.exporters.recording.framing import (
    FRAME_HEAD,
    MAGIC,
    MOST_FRAME_BYTES,
    RecordingError,
    check_magic,
    parse_json,
    read_head,
)
from vramscope.exporters.recording.patch import PatchError, apply
from vramscope.exporters.recording.writer import Started
from vramscope.exporters.refresh import Refresh

__all__ = ["Recording"]

MOST_HELD_BYTES = 4 * MOST_FRAME_BYTES
"""Of JSON since a refresh was written whole: bounds what a hostile file makes us hold."""


class Recording:
    """An open recording. Iterate once; ``close`` it, or use it as a context.

    Attributes:
        started: who recorded, and when.
        cut: after the last refresh: the file ends in the middle of a frame, as when the recorder
            was killed or still writes.

    Raises:
        RecordingError: on opening or reading: not a recording, newer, or damaged: says where.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cut = False
        self._at_s = float("-inf")
        self._tree: Tree = None
        self._held_bytes = 0
        self._unpacker = zlib.decompressobj()
        try:
            self._file: BinaryIO = path.open("rb")
        except OSError as error:
            raise RecordingError(f"{path}: {error.strerror}") from error
        try:
            self._read_start()
        except RecordingError as error:
            self._file.close()
            raise RecordingError(f"{path}: {error}") from error

    def __enter__(self) -> "Recording":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __iter__(self) -> Iterator[Refresh]:
        number = 0
        while True:
            number += 1
            offset = self._file.tell()
            try:
                payload = self._payload()
                if payload is None:
                    return
                refresh = self._refresh(payload)
            except (RecordingError, CodecError, PatchError, RecursionError) as error:
                raise RecordingError(
                    f"{self.path}: damaged at byte {offset}, refresh {number}: {error}"
                ) from error
            yield refresh

    def _read_start(self) -> None:
        check_magic(self._file.read(len(MAGIC)))
        payload = self._payload()
        if payload is None:
            raise RecordingError("ends within its header: nothing was recorded")
        header = parse_json(payload)
        if not isinstance(header, dict):
            raise RecordingError("its header is no object")
        self.started = _started(header)
        try:
            self._decoder = Decoder(_schema(header.get("schema")))
        except CodecError as error:
            raise RecordingError(str(error)) from error

    def _payload(self) -> bytes | None:
        """Return the next frame's payload; None at the end, whole or not."""
        head = self._file.read(FRAME_HEAD.size)
        if len(head) < FRAME_HEAD.size:
            self.cut = bool(head)
            return None
        length, crc = read_head(head)
        left = os.fstat(self._file.fileno()).st_size - self._file.tell()
        if left < length:
            self.cut = True
            return None
        payload = self._file.read(length)
        if zlib.crc32(payload) != crc:
            raise RecordingError("the checksum is wrong: want the file as it was written")
        return payload

    def _refresh(self, payload: bytes) -> Refresh:
        try:
            text = self._unpacker.decompress(payload, MOST_FRAME_BYTES)
        except zlib.error as error:
            raise RecordingError(f"can't be unpacked: {error}") from error
        if self._unpacker.unconsumed_tail:
            raise RecordingError(f"unpacks to more than {MOST_FRAME_BYTES} bytes")
        patch = parse_json(text)
        whole = isinstance(patch, list) and len(patch) == 1
        self._held_bytes = len(text) + (0 if whole else self._held_bytes)
        if self._held_bytes > MOST_HELD_BYTES:
            raise RecordingError(f"more than {MOST_HELD_BYTES} bytes since a whole refresh")
        self._tree = apply(self._tree, patch)
        refresh: Refresh = self._decoder.decode(self._tree)
        if not self._at_s <= refresh.at_s < float("inf"):
            raise RecordingError(f"its time is {refresh.at_s}, want {self._at_s} or later")
        self._at_s = refresh.at_s
        return refresh


def _started(header: dict[str, Any]) -> Started:
    texts = {name: header.get(name) for name in ("version", "hostname")}
    numbers = {name: header.get(name) for name in ("unix_s", "monotonic_s", "period_s")}
    for name, value in texts.items():
        if not isinstance(value, str):
            raise RecordingError(f"its header's {name} is {value!r}, want text")
    for name, value in numbers.items():
        if not isinstance(value, int | float):
            raise RecordingError(f"its header's {name} is {value!r}, want a number")
    return Started(**texts, **numbers)  # type: ignore[arg-type]  # checked above


def _schema(found: Any) -> Schema:
    if not isinstance(found, dict) or not all(
        isinstance(names, list) and all(isinstance(name, str) for name in names)
        for names in found.values()
    ):
        raise RecordingError("its header has no schema: want names of fields by class")
    return found
