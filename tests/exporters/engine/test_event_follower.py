"""Each event is told once, whatever happens to the record in between."""

import struct
from pathlib import Path
from typing import Any

import pytest

from vramscope.exporters.engine import record
from vramscope.exporters.engine.host import HostRecords
from vramscope.exporters.engine.record import EventKind, Tier
from vramscope.exporters.engine.writer import RecordWriter


class Engine:
    """Writes a record of its own with a small ring."""

    def __init__(self, folder: Path, role: str = "engine", rank: int = 0, slots: int = 8) -> None:
        header = {"role": role, "engine": "a", "dp_rank": 0, "rank": rank}
        name = f"a.dp0.{role}{rank}"
        self.writer = RecordWriter(folder, name, header, ["steps"], ring_slots=slots)

    def tell(self, *requests: int, time_s: float = 1.0, kind: EventKind = EventKind.QUEUED) -> None:
        for request in requests:
            self.writer.add_event(request, time_s, kind, tier=Tier.NONE)
        self.writer.write_step([1])

    def write_payload(self, payload: bytes) -> None:
        """Write a step as no writer of ours does."""
        with self.writer.path.open("r+b") as file:
            file.seek(self.writer.layout.step.offset)
            file.write(record.encode_cell(1, payload))


@pytest.fixture
def host(tmp_path: Path) -> Any:
    made = HostRecords(tmp_path, clock=lambda: 1000.0)
    yield made
    made.close()


def take(host: HostRecords) -> tuple[list[int], int]:
    host.read()
    taken = host.events()
    return [e.request for one in taken for e in one.events], sum(one.lost for one in taken)


def test_each_event_is_told_once(tmp_path: Path, host: HostRecords) -> None:
    engine = Engine(tmp_path)
    engine.tell(1, 2)
    assert take(host) == ([1, 2], 0)
    assert take(host) == ([], 0)
    engine.tell(3)
    assert take(host) == ([3], 0)
    engine.writer.close()


def test_overrun_says_how_many_are_lost(tmp_path: Path, host: HostRecords) -> None:
    engine = Engine(tmp_path, slots=8)
    engine.tell(0)
    take(host)
    engine.tell(*range(1, 20))  # the step has 16 to 19, the ring the 8 before
    assert take(host) == (list(range(8, 20)), 7)
    engine.writer.close()


def test_what_was_overwritten_before_the_first_look_is_not_called_lost(
    tmp_path: Path, host: HostRecords
) -> None:
    engine = Engine(tmp_path, slots=8)
    engine.tell(*range(20))
    assert take(host) == (list(range(8, 20)), 0)
    engine.writer.close()


def test_engine_that_starts_again_begins_anew(tmp_path: Path, host: HostRecords) -> None:
    engine = Engine(tmp_path)
    engine.tell(1, 2, 3)
    take(host)
    engine.writer.close()
    assert take(host) == ([], 0)
    again = Engine(tmp_path)
    again.tell(7)
    assert take(host) == ([7], 0)
    again.writer.close()


def test_events_of_rank_0s_worker_stand_among_the_engines(
    tmp_path: Path, host: HostRecords
) -> None:
    engine = Engine(tmp_path)
    workers = [Engine(tmp_path, "worker", rank) for rank in (0, 1)]
    engine.tell(5, time_s=1.0)
    for worker in workers:
        worker.tell(6, time_s=1.5, kind=EventKind.ADAPTER_APPLIED)
    engine.tell(7, time_s=2.0)
    assert take(host) == ([5, 6, 7], 0)
    for one in (engine, *workers):
        one.writer.close()


@pytest.mark.parametrize("ring_events", [2**63, 2**64 - 1])
def test_record_whose_number_of_events_is_wrong_ends_nobody_else(
    tmp_path: Path, host: HostRecords, ring_events: int
) -> None:
    bad, good = Engine(tmp_path, rank=1), Engine(tmp_path, slots=8)
    bad.write_payload(struct.pack("<Qd", ring_events, 1.0))
    good.tell(7)
    told, _ = take(host)
    assert told == [7]
    bad.writer.close()
    good.writer.close()


def test_record_whose_step_has_half_an_event_is_passed_over(
    tmp_path: Path, host: HostRecords
) -> None:
    bad, good = Engine(tmp_path, rank=1), Engine(tmp_path, slots=8)
    bad.write_payload(struct.pack("<Qd", 0, 1.0) + bytes(record.EVENT.size // 2))
    good.tell(7)
    told, _ = take(host)
    assert told == [7]
    bad.writer.close()
    good.writer.close()
