"""Request events of the engines of this host, each told once."""

from collections.abc import Mapping
from dataclasses import dataclass

from vramscope.exporters.engine.reader import RecordReader
from vramscope.exporters.engine.record import Event, RecordError

__all__ = ["EngineEvents", "EventFollower"]


@dataclass(frozen=True, slots=True)
class EngineEvents:
    """What happened to the requests of one engine since the last look.

    Attributes:
        engine: stable id.
        dp_rank: data-parallel rank.
        events: of its EngineCore and of rank 0's worker, in order of time.
        lost: events overwritten before they were read.
    """

    engine: str
    dp_rank: int
    events: tuple[Event, ...]
    lost: int


class EventFollower:
    """Keeps the place in each record's ring.

    A record seen for the first time tells what its ring still holds. An engine that starts again
    has a new record, so nothing of it is taken for old.
    """

    def __init__(self) -> None:
        self._next: dict[tuple[str, int], int] = {}

    def take(self, records: Mapping[tuple[str, int], RecordReader]) -> list[EngineEvents]:
        """Return what is new in these records, for each engine that has something.

        A record that can't be read now is looked at again next time.

        Args:
            records: the open ones, by path and inode.
        """
        self._next = {key: number for key, number in self._next.items() if key in records}
        events: dict[tuple[str, int], list[Event]] = {}
        lost: dict[tuple[str, int], int] = {}
        for key, reader in records.items():
            header = reader.header
            if header.get("role") == "worker" and header.get("rank") != 0:
                continue  # all ranks apply the same adapters
            engine = str(header.get("engine")), int(header.get("dp_rank", 0))
            try:
                found, gone, self._next[key] = reader.events(self._next.get(key))
            except RecordError:
                continue
            events.setdefault(engine, []).extend(found)
            lost[engine] = lost.get(engine, 0) + gone
        return [
            EngineEvents(*engine, tuple(sorted(found, key=_time_s)), lost[engine])
            for engine, found in events.items()
            if found or lost[engine]
        ]


def _time_s(event: Event) -> float:
    return event.time_s
