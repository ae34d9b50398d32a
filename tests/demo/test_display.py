from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from vramscope.demo.live_table import header, row
from vramscope.demo.load import ABORTED, COMPLETED, CUT, FAILED, Report
from vramscope.demo.router import picks_line
from vramscope.demo.signals import EngineView, view
from vramscope.demo.summary import shortcomings, summary
from vramscope.demo.watch import History
from vramscope.exporters.exposition.signals_json import signals_document
from vramscope.exporters.signals.kv_samples import KvSample
from vramscope.exporters.signals.lora_samples import LoraSample
from vramscope.exporters.signals.samples import EngineSample, EngineState

TERMINAL_COLUMNS = 100

SAMPLE = EngineSample(
    engine="a",
    model="tiny",
    dp_rank=0,
    vllm_version="0.32.0",
    state=EngineState.BUSY,
    age_s=0.01,
    kv=(
        KvSample(
            pool=0, blocks=20, live=9.0, slack=3.0, lookahead=0.0, held=1, evictable=4, clean=3,
            reserved=1, age_s=0.1,
        ),
    ),
    running=6,
    waiting=3,
    steps=1000,
    preemptions={"kv_full": 12, "reset": 1},
    preempted_tokens=2345,
    prefill_tokens=12000,
    recomputed_tokens=1200,
    generated_tokens=25114,
    cached_tokens=3104,
    first_schedules=300,
    finished={"finished": 280, "aborted": 11},
    lora=LoraSample(
        requests={"gpu": 54, "cpu": 20, "disk": 64},
        loads={"cpu": 12, "disk": 37},
        load_seconds={"cpu": 0.1, "disk": 1.5},
        load_bounds_s=(),
        load_counts={},
        resident={"ad0": "gpu"},
        gpu_slots=1,
        cpu_slots=2,
    ),
)  # fmt: skip


def shown(sample: EngineSample = SAMPLE) -> EngineView:
    return view(signals_document([sample])["engines"][0])


BUSY = shown()
STARTED = shown(replace(SAMPLE, kv=(), lora=None, generated_tokens=25000, preemptions={}))


def history(*views: EngineView) -> History:
    result = History()
    for one in views:
        result.add([one, replace(one, engine="b")])
    return result


def report(**outcomes: int) -> Report:
    return Report(
        outcomes=Counter({COMPLETED: 578, ABORTED: 20, CUT: 14}) + Counter(outcomes),
        prompt_tokens=67938,
        completion_tokens=51734,
        ttft_s=[0.1, 0.2, 0.3, 0.4],
    )


def test_a_view_holds_what_the_exporter_says() -> None:
    assert BUSY.pool is not None
    assert BUSY.pool["live"] == 9 / 20
    assert BUSY.fragmentation == (3 + 1) / (3 + 4 + 3)
    assert BUSY.waste == 3 / 12
    assert BUSY.preemptions == 13
    assert BUSY.lora_requests == {"gpu": 54, "cpu": 20, "disk": 64}
    assert STARTED.pool is None
    assert STARTED.lora_loads == {"cpu": 0, "disk": 0}


def test_live_table(golden: Callable[[str, str], None]) -> None:
    lines = [header(), row(5, STARTED, STARTED, 5), row(10, BUSY, STARTED, 5)]
    text = "\n".join(lines) + "\n"
    assert max(map(len, text.splitlines())) <= TERMINAL_COLUMNS
    golden("demo/live_table.txt", text)


def test_summary(golden: Callable[[str, str], None]) -> None:
    fuller = replace(BUSY, fragmentation=0.9, waste=0.5)
    text = "\n".join(summary(history(STARTED, BUSY, fuller), report(), 60)) + "\n"
    assert max(map(len, text.splitlines())) <= TERMINAL_COLUMNS
    golden("demo/summary.txt", text)


def test_nothing_is_short_when_pressure_was_seen_and_all_went_well() -> None:
    assert shortcomings(history(BUSY), report(), ["a", "b"]) == []


@pytest.mark.parametrize(
    ("last", "outcomes", "word"),
    [
        (replace(BUSY, preemptions=0), {}, "no preemption"),
        (replace(BUSY, lora_requests={"gpu": 9, "cpu": 3, "disk": 0}), {}, "met a cold adapter"),
        (BUSY, {FAILED: 2}, "2 requests failed"),
    ],
)
def test_what_was_not_shown_is_said(last: EngineView, outcomes: dict[str, int], word: str) -> None:
    (line,) = shortcomings(history(last), report(**outcomes), ["a", "b"])
    assert word in line


def test_an_engine_that_is_gone_at_the_end_is_said() -> None:
    seen = history(BUSY)
    seen.add([BUSY])
    (line,) = shortcomings(seen, report(), ["a", "b"])
    assert "engine b" in line


def test_a_load_without_answers_has_a_summary() -> None:
    text = "\n".join(summary(History(), Report(), 1))
    assert "requests: none" in text


PICKS = """\
vramscope_decisions_total{policy="seed",reason="turn"} 34
vramscope_decisions_total{policy="seed",reason="room"} 207
vramscope_decisions_total{policy="seed",reason="only"} 0
vramscope_router_lora_picks_total{warmth="gpu"} 3
vramscope_router_lora_picks_total{warmth="disk"} 5
vramscope_router_lora_picks_total{warmth="unreported"} 7
"""
TYPES = """\
# TYPE vramscope_decisions_total counter
# TYPE vramscope_router_lora_picks_total counter
"""


def test_picks_count_as_warm_only_among_those_reported() -> None:
    line = picks_line(TYPES + PICKS)
    assert line == "picks: 207 room, 34 turn; 3 of 8 adapter picks found the adapter warm"


def test_a_controller_that_picked_nothing_yet_is_no_mistake() -> None:
    assert picks_line("") == "picks: none"
