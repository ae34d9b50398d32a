"""Writes a recording: one ``write`` a refresh, so that a kill loses the last one at most."""

import json
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

from vramscope.exporters.recording.codec import Tree, encode, own_schema
from vramscope.exporters.recording.framing import MAGIC, MOST_FRAME_BYTES, RecordingError, frame
from vramscope.exporters.recording.patch import difference
from vramscope.exporters.refresh import Refresh

__all__ = ["WHOLE_EVERY", "RecordingWriter", "Started"]

FILE_MODE = 0o640
WHOLE_EVERY = 600
"""Refreshes between two that are written whole: bounds what a reader must hold."""
LEVEL = 6


@dataclass(frozen=True, slots=True)
class Started:
    """Who records, and when.

    Attributes:
        version: of vramscope.
        hostname: label of the GPUs' series.
        unix_s: wall clock, seconds.
        monotonic_s: the same moment on the clock of ``Refresh.at_s``.
        period_s: time between refreshes.
    """

    version: str
    hostname: str
    unix_s: float
    monotonic_s: float
    period_s: float


class RecordingWriter:
    """An open recording; ``close`` it. Not thread-safe.

    Args:
        path: of a new file; one that is there is left alone.
        started: goes into the header.

    Raises:
        RecordingError: on opening or writing: it is there already, the disk is full, and so on.
            What was written before stays readable.
    """

    def __init__(self, path: Path, started: Started) -> None:
        self.path = path
        self.refreshes = 0
        self.size_bytes = 0
        self._last: Tree = None
        self._packer = zlib.compressobj(LEVEL)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            self._fd = os.open(path, flags, FILE_MODE)
        except FileExistsError:
            raise RecordingError(f"{path}: is there already: want a new file") from None
        except OSError as error:
            raise RecordingError(f"{path}: {error.strerror}") from error
        header = {**encode_started(started), "schema": own_schema()}
        try:
            self._append(MAGIC + frame(json.dumps(header).encode()))
        except RecordingError:
            os.close(self._fd)
            path.unlink()
            raise

    def write(self, refresh: Refresh) -> None:
        """Append what one refresh read."""
        tree = encode(refresh)
        whole = self.refreshes % WHOLE_EVERY == 0
        patch = [tree] if whole else difference(self._last, tree)
        text = json.dumps(patch, separators=(",", ":")).encode()
        if len(text) > MOST_FRAME_BYTES:
            raise RecordingError(
                f"{self.path}: a refresh of {len(text)} bytes, want {MOST_FRAME_BYTES} at most"
            )
        packed = self._packer.compress(text) + self._packer.flush(zlib.Z_SYNC_FLUSH)
        self._append(frame(packed))
        self._last = tree
        self.refreshes += 1

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def _append(self, data: bytes) -> None:
        written = 0
        try:
            while written < len(data):
                written += os.write(self._fd, data[written:])
        except OSError as error:
            os.ftruncate(self._fd, self.size_bytes)
            raise RecordingError(
                f"{self.path}: {error.strerror} after {self.size_bytes} bytes; the "
                f"{self.refreshes} refreshes before are whole: want room, or another --output"
            ) from error
        self.size_bytes += len(data)


def encode_started(started: Started) -> dict[str, str | float]:
    """Return the header's part that says who records."""
    return {name: getattr(started, name) for name in Started.__slots__}
