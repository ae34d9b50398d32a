"""Reading the records: the last good values stay, failures are said once, ages grow."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from vramscope.controller.sense import Sense
from vramscope.exporters.engine.host import FOLDER_SOURCE, Reading

Make = Callable[..., Any]
FOLDER = Reading(FOLDER_SOURCE)


class Source:
    def __init__(self) -> None:
        self.now_s = 100.0
        self.readings: Sequence[Reading] | Exception = []

    def read(self) -> Sequence[Reading]:
        if isinstance(self.readings, Exception):
            raise self.readings
        return self.readings


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def sense(source: Source) -> Sense:
    return Sense(source.read, 0.001, lambda: source.now_s)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return lines


async def test_a_good_read_is_an_observation_of_each_engine(
    source: Source, sense: Sense, sample: Make
) -> None:
    ranks = [sample("a"), sample("a", dp_rank=1), sample("b")]
    source.readings = [FOLDER, *(Reading("engine", one) for one in ranks)]
    await sense.once()
    observation = sense.observation("a")
    assert observation is not None
    assert observation.samples == tuple(ranks[:2])
    assert observation.read_at_s == 100.0
    assert sense.observation("b") is not None
    assert sense.observation("c") is None
    assert (sense.up, sense.age_s()) == (True, 0.0)


@pytest.mark.parametrize(
    "failure",
    [
        OSError("gone"),
        ValueError("a bug"),
        [Reading(FOLDER_SOURCE, error="no such folder")],
    ],
)
async def test_a_failed_read_leaves_the_last_values_to_grow_old(
    source: Source, sense: Sense, sample: Make, failure: Any
) -> None:
    source.readings = [FOLDER, Reading("engine:a", sample("a"))]
    await sense.once()
    before = sense.observation("a")
    source.now_s, source.readings = 103.0, failure
    await sense.once()
    assert sense.observation("a") is before
    assert (sense.up, sense.age_s()) == (False, 3.0)


async def test_before_the_first_good_read_there_is_no_age(source: Source, sense: Sense) -> None:
    source.readings = OSError("gone")
    await sense.once()
    assert (sense.up, sense.age_s()) == (False, None)


async def test_an_engine_that_is_gone_is_forgotten(
    source: Source, sense: Sense, sample: Make
) -> None:
    source.readings = [FOLDER, Reading("engine:a", sample("a")), Reading("engine:b", sample("b"))]
    await sense.once()
    source.readings = [FOLDER, Reading("engine:a", sample("a"))]
    await sense.once()
    assert sense.observation("b") is None


async def test_a_broken_record_keeps_its_last_values_and_disturbs_no_other(
    source: Source, sense: Sense, sample: Make
) -> None:
    source.readings = [FOLDER, Reading("engine:a", sample("a")), Reading("engine:b", sample("b"))]
    await sense.once()
    source.now_s = 101.0
    # With an error, a sample says only which engine it is about.
    broken = Reading("engine:b", sample("b"), "the probe switched itself off")
    source.readings = [FOLDER, Reading("engine:a", sample("a")), broken]
    await sense.once()
    ages = {name: sense.observation(name) for name in "ab"}
    assert {name: one and one.read_at_s for name, one in ages.items()} == {"a": 101.0, "b": 100.0}
    assert sense.up


async def test_a_failure_is_logged_when_it_begins_changes_and_ends(
    source: Source, sense: Sense, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "vramscope")
    source.readings = [FOLDER, Reading("engine:a", None, "truncated")]
    await sense.once()
    assert said(caplog) == ["engine:a: truncated"]
    await sense.once()
    assert said(caplog) == []
    source.readings = [FOLDER, Reading("engine:a", None, "newer schema")]
    await sense.once()
    assert said(caplog) == ["engine:a: newer schema"]
    source.readings = [FOLDER]
    await sense.once()
    assert said(caplog) == ["engine:a can be read again"]


async def test_run_reads_again_and_again(source: Source, sense: Sense) -> None:
    enough = asyncio.Event()
    loop = asyncio.get_running_loop()
    reads = 0

    def read() -> Sequence[Reading]:
        nonlocal reads
        reads += 1
        if reads == 3:
            loop.call_soon_threadsafe(enough.set)
        return [FOLDER]

    sense._read = read
    task = asyncio.create_task(sense.run())
    async with asyncio.timeout(10):
        await enough.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert sense.up
