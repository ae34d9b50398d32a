"""All engines of this host, from the records in the run directory."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from vramscope.exporters.engine import record
from vramscope.exporters.engine.events import EngineEvents, EventFollower
from vramscope.exporters.engine.reader import RecordReader
from vramscope.exporters.engine.sample import engine_processes, engine_sample
from vramscope.exporters.signals.samples import EngineSample

__all__ = ["FOLDER_SOURCE", "HostRecords", "Reading", "record_paths"]

FOLDER_SOURCE = "records"


@dataclass(frozen=True, slots=True)
class Reading:
    """What one source gave.

    Attributes:
        source: ``records`` for the folder, ``engine:NAME`` for an engine, ``record:FILE`` for a
            file whose engine is not known.
        sample: the engine's sample; with ``error`` set it says only what the engine is.
        error: why it could not be read, in one line; None when it could.
    """

    source: str
    sample: EngineSample | None = None
    error: str | None = None


class HostRecords:
    """Finds records, keeps them open, drops the dead.

    Looks in the run directory and its subfolders (one a pod in Kubernetes). Follows no links.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock
        self._open: dict[tuple[str, int], RecordReader] = {}
        self._events = EventFollower()

    def read(self) -> list[Reading]:
        """Return a reading for the folder, and one for each live engine or unreadable file."""
        try:
            found = dict(sorted(_find(self._folder)))  # whatever the folder's own order
        except OSError as error:
            self.close()
            return [Reading(FOLDER_SOURCE, error=_folder_error(self._folder, error))]
        readings = [Reading(FOLDER_SOURCE)]
        for key in [key for key in self._open if key not in found]:
            self._open.pop(key).close()
        engines: list[tuple[str, RecordReader]] = []
        workers: dict[tuple[str, str, int], list[RecordReader]] = {}
        for key, path in found.items():
            try:
                reader = self._reader(key, path)
            except (record.RecordError, OSError) as error:
                readings.append(Reading(f"record:{Path(path).name}", error=f"{path}: {error}"))
                continue
            if reader is None:
                continue
            header = reader.header
            if header.get("role") == "engine":
                engines.append((path, reader))
            elif header.get("role") == "worker":
                workers.setdefault(_rank_of(path, reader), []).append(reader)
        now = self._clock()
        for path, reader in engines:
            its_workers = workers.get(_rank_of(path, reader), [])
            readings.append(self._reading(path, reader, its_workers, now))
        return readings

    def events(self) -> list[EngineEvents]:
        """Return the request events since the last call, of the engines that ``read`` found."""
        return self._events.take(self._open)

    def close(self) -> None:
        """Close all records."""
        for reader in self._open.values():
            reader.close()
        self._open.clear()

    def _reader(self, key: tuple[str, int], path: str) -> RecordReader | None:
        """Return the open record, or None when its process is dead."""
        reader = self._open.get(key)
        if reader is None:
            try:
                reader = RecordReader(path)
            except FileNotFoundError:
                return None  # gone since the folder was listed
        if not reader.is_alive():
            self._open.pop(key, None)
            reader.close()
            return None
        self._open[key] = reader
        return reader

    def _reading(
        self, path: str, reader: RecordReader, workers: list[RecordReader], now: float
    ) -> Reading:
        header = reader.header
        dp_rank = int(header.get("dp_rank", 0))
        source = f"engine:{header.get('engine')}" + (f".dp{dp_rank}" if dp_rank else "")
        try:
            state = reader.state()
            processes = engine_processes([reader, *workers])
            fields = reader.scan() | reader.step()
            sample = engine_sample(header, fields, state, workers, now, processes)
        except record.RecordError as error:
            return Reading(source, error=f"{path}: {error}")
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            # Written by another process, perhaps of another user: anything may be in it.
            return Reading(source, error=f"{path}: damaged: {type(error).__name__}: {error}")
        off = state.get("error")
        why = f"{path}: the probe switched itself off: {off}" if off else None
        return Reading(source, sample, why)


def _rank_of(path: str, reader: RecordReader) -> tuple[str, str, int]:
    """Return what a worker and its EngineCore share: pod folder, engine, data-parallel rank."""
    header = reader.header
    return str(Path(path).parent), str(header.get("engine")), int(header.get("dp_rank", 0))


def record_paths(folder: Path) -> list[str]:
    """Return the paths of the records in a run directory and its subfolders.

    Raises:
        OSError: the folder can't be read.
    """
    return sorted(path for _, path in _find(folder))


def _find(folder: Path) -> Iterator[tuple[tuple[str, int], str]]:
    """Yield ((path, inode), path) of each record file."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                try:
                    with os.scandir(entry.path) as inner:
                        yield from _records(inner)
                except (PermissionError, FileNotFoundError):
                    continue  # another user's pod, or one that just left
            else:
                yield from _records([entry])


def _records(
    entries: Iterator["os.DirEntry[str]"] | list["os.DirEntry[str]"],
) -> Iterator[tuple[tuple[str, int], str]]:
    for entry in entries:
        if entry.name.endswith(record.SUFFIX) and not entry.name.startswith("."):
            yield (entry.path, entry.inode()), entry.path


def _folder_error(folder: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return (
            f"{folder}: no such folder: no vLLM engine with the probe has run on this host yet, "
            "or it writes elsewhere (VRAMSCOPE_RUN_DIR, --run-dir)"
        )
    return f"{folder}: {error.strerror}"
