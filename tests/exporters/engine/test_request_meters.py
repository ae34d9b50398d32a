"""The meters of the request parts, by hand."""

from types import SimpleNamespace
from typing import Any

import pytest

from vramscope.exporters.catalog import load as load_catalog
from vramscope.exporters.catalog import preemption as preemption_catalog
from vramscope.exporters.engine.probe.histogram import Histogram
from vramscope.exporters.engine.probe.load import QUEUE_BOUNDS_S, STEP_BOUNDS_S, LoadMeter
from vramscope.exporters.engine.probe.preemption import (
    RESUMPTION_BOUNDS_S,
    VICTIM_AGE_BOUNDS_S,
    PreemptionMeter,
)
from vramscope.exporters.engine.probe.requests import PrefillMeter, TrackedRequest
from vramscope.exporters.engine.probe.waiting import WaitingReasons
from vramscope.exporters.engine.samples.histogram import histogram_sample


def scanned(part: Any, now_s: float = 0.0) -> dict[str, float]:
    return dict(zip(part.scan_fields, part.scan(now_s), strict=True))


def tracked(name: str, first_scheduled_s: float | None = None) -> TrackedRequest:
    made = TrackedRequest(SimpleNamespace(request_id=name, lora_request=None), randomized=False)
    made.first_scheduled_s = first_scheduled_s
    return made


@pytest.mark.parametrize(
    ("metric", "bounds"),
    [
        (load_catalog.STEP_SECONDS, STEP_BOUNDS_S),
        (load_catalog.QUEUE_SECONDS, QUEUE_BOUNDS_S),
        (preemption_catalog.PREEMPTION_RESUMPTION, RESUMPTION_BOUNDS_S),
        (preemption_catalog.PREEMPTION_VICTIM_AGE, VICTIM_AGE_BOUNDS_S),
    ],
)
def test_bounds_in_the_probe_are_the_catalogs(metric: Any, bounds: tuple[float, ...]) -> None:
    assert metric.buckets == bounds


def test_observation_on_a_bound_is_in_its_bucket_and_one_over_the_last_in_the_total_only() -> None:
    histogram = Histogram("x_s", (1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 99.0):
        histogram.observe(value)
    fields = dict(zip(histogram.fields, histogram.values(), strict=True))
    sample = histogram_sample(fields, "x_s")
    assert (sample.counts, sample.total, sample.summed) == ({1.0: 2, 2.0: 1}, 4, 102.0)


def test_each_preemption_ends_by_resumption_or_by_leaving_or_waits() -> None:
    meter = PreemptionMeter()
    a, b, c = tracked("a", 10.0), tracked("b", 11.0), tracked("c", 11.5)
    for victim in (a, b, c):
        meter.preempted(victim, lost_tokens=100, reason="kv_exhausted", now_s=12.0)
    meter.resumed(a, cached_tokens=32, now_s=12.75)
    meter.left(b)
    fields = scanned(meter)
    ends = fields["preemption_resumed"], fields["preemption_left"], fields["preemption_waiting"]
    assert ends == (1, 1, 1)
    assert meter.lost_tokens == 300
    assert fields["preemption_rehit_tokens"] == 32
    assert fields["preemption_resumption_s_sum"] == 0.75
    assert fields["preemption_victim_age_s_sum"] == 2.0 + 1.0 + 0.5


def test_cached_tokens_beyond_what_was_lost_are_no_rehit() -> None:
    meter = PreemptionMeter()
    a = tracked("a", 0.0)
    meter.preempted(a, lost_tokens=40, reason="kv_exhausted", now_s=1.0)
    meter.resumed(a, cached_tokens=64, now_s=2.0)  # others cached more of its prompt meanwhile
    assert scanned(meter)["preemption_rehit_tokens"] == 40


def test_lost_tokens_are_found_again_computed_again_or_abandoned() -> None:
    meter, prefill = PreemptionMeter(), PrefillMeter()
    a = tracked("a", 0.0)
    a.request.num_prompt_tokens = 80
    meter.preempted(a, lost_tokens=100, reason="kv_exhausted", now_s=1.0)
    prefill.begin(a, cached_tokens=0, schedule=1)
    meter.resumed(a, cached_tokens=0, now_s=2.0)
    prefill.step({"a": 40}, 1)  # 60 below the mark to go
    meter.preempted(a, lost_tokens=40, reason="kv_exhausted", now_s=3.0)
    prefill.begin(a, cached_tokens=64, schedule=2)  # 24 more than it lost last
    meter.resumed(a, cached_tokens=64, now_s=4.0)
    prefill.step({"a": 16}, 2)
    meter.left(a)
    fields = scanned(meter)
    assert meter.lost_tokens == 140
    assert fields["preemption_rehit_tokens"] == 64
    assert prefill.recomputed_tokens == 40 + 16
    assert fields["preemption_abandoned_tokens"] == 20 == 140 - 64 - 56


def test_request_that_leaves_while_preempted_abandons_all_it_had() -> None:
    meter = PreemptionMeter()
    a = tracked("a", 0.0)
    meter.preempted(a, lost_tokens=70, reason="kv_exhausted", now_s=1.0)
    meter.left(a)
    assert scanned(meter)["preemption_abandoned_tokens"] == 70


def test_storm_shows_as_repeats_of_one_victim_and_ends_with_it() -> None:
    meter = PreemptionMeter()
    a = tracked("a", 0.0)
    for now in (1.0, 2.0, 3.0):
        meter.preempted(a, lost_tokens=10, reason="kv_exhausted", now_s=now)
        meter.resumed(a, cached_tokens=0, now_s=now + 0.5)
    fields = scanned(meter)
    assert fields["preemption_victims"] == 1
    assert fields["preemption_repeats"] == 2
    assert fields["preemption_most"] == 3
    meter.left(a)
    assert scanned(meter)["preemption_most"] == 0
    assert scanned(meter)["preemption_repeats"] == 2


def test_request_from_before_the_probe_counts_in_the_totals_only() -> None:
    meter = PreemptionMeter()
    meter.preempted(None, lost_tokens=7, reason="other", now_s=1.0)
    assert (meter.preemptions["other"], meter.lost_tokens) == (1, 7)
    assert scanned(meter)["preemption_victims"] == 0


def output(**tokens: int) -> Any:
    return SimpleNamespace(
        num_scheduled_tokens=tokens, total_num_scheduled_tokens=sum(tokens.values())
    )


def test_decode_tokens_are_what_a_step_computed_beyond_prefill() -> None:
    prefill = PrefillMeter()
    meter = LoadMeter(prefill)
    prefill.prefill_tokens = 64
    meter.computed(output(a=64, b=1, c=1), schedule=1, began_s=0.0, now_s=1.0)
    fields = scanned(meter)
    assert (fields["load_requests"], fields["load_decode_tokens"]) == (3, 2)
    assert (meter.batch_requests, meter.batch_tokens) == (3, 66)


def test_prefill_counted_when_its_request_left_is_no_decode_when_the_step_completes() -> None:
    prefill = PrefillMeter()
    meter = LoadMeter(prefill)
    prefill.prefill_tokens = 64
    meter.left_early(schedule=1, prefill_tokens=64)
    assert scanned(meter)["load_decode_tokens"] == 0
    meter.computed(output(a=64, b=1), schedule=1, began_s=0.0, now_s=1.0)
    assert scanned(meter)["load_decode_tokens"] == 1


def test_times_of_overlapping_steps_add_up_to_the_time_at_work() -> None:
    meter = LoadMeter(PrefillMeter())
    meter.computed(output(a=1), schedule=1, began_s=10.0, now_s=10.5)
    # Scheduled while the step before ran; then after a pause.
    meter.computed(output(a=1), schedule=2, began_s=10.2, now_s=11.0)
    meter.computed(output(a=1), schedule=3, began_s=12.0, now_s=12.25)
    fields = scanned(meter)
    assert fields["load_step_s_sum"] == 0.5 + 0.5 + 0.25
    assert fields["load_step_s_count"] == meter.steps == 3


class Queue(list[Any]):
    """A queue of requests as vLLM's: iterates from its head."""


def request(status: str = "WAITING", adapter: int | None = None) -> Any:
    lora = None if adapter is None else SimpleNamespace(lora_int_id=adapter)
    return SimpleNamespace(status=SimpleNamespace(name=status), lora_request=lora)


ONE_ADAPTER = SimpleNamespace(max_loras=1)


def scheduler(waiting: list[Any], aside: list[Any], running: int = 1, **more: Any) -> Any:
    return SimpleNamespace(
        waiting=Queue(waiting),
        deferred_waiting=set_of(aside),
        running=[request()] * running,
        get_request_counts=lambda: (running, len(waiting)),
        max_num_active_reqs=8,
        max_num_scheduled_tokens=64,
        **more,
    )


def set_of(requests: list[Any]) -> dict[int, Any]:
    """Return something whose length and values are the requests': they have no hash here."""
    return _Values(enumerate(requests))


class _Values(dict[int, Any]):
    def __iter__(self) -> Any:
        return iter(self.values())


def reasons(of: Any, batch_tokens: int = 8, short_of_blocks: bool = False, arrived: int = 0) -> Any:
    part = WaitingReasons(of)
    part.schedule = (7, batch_tokens, short_of_blocks)
    for name in "abc":
        part.unscheduled[name] = tracked(name)
    for name in "abc"[3 - arrived :]:
        part.unscheduled[name].queued_after = 7
    fields = scanned(part)
    return {
        name.removeprefix("waiting_"): count
        for name, count in fields.items()
        if count and name != "waiting_oldest_s"
    }


def test_requests_set_aside_have_each_their_own_reason() -> None:
    aside = [
        request("WAITING_FOR_REMOTE_KVS"),
        request("WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR"),
        request(adapter=2),
    ]
    of = scheduler(aside, aside, lora_config=ONE_ADAPTER)
    of.running = [request(adapter=1)]
    assert reasons(of) == {"remote_kv": 1, "grammar": 1, "lora_slot": 1}


def test_request_that_was_set_aside_once_has_the_reason_of_the_others_when_that_is_over() -> None:
    aside = [request(adapter=1), request(adapter=2), request()]  # a slot is free; a grammar is done
    of = scheduler(aside, aside, running=8, lora_config=SimpleNamespace(max_loras=2))
    of.running[0] = request(adapter=3)
    assert reasons(of) == {"batch_full": 3}


@pytest.mark.parametrize(
    ("of", "how", "reason"),
    [
        (scheduler([request()] * 3, [], running=8), {}, "batch_full"),
        (scheduler([request()] * 3, []), {"batch_tokens": 64}, "token_budget"),
        (scheduler([request()] * 3, []), {"short_of_blocks": True}, "kv_blocks"),
        (scheduler([request()] * 3, []), {}, "other"),
        (
            scheduler([request()] * 3, [], _pause_state=SimpleNamespace(name="PAUSED_ALL")),
            {"short_of_blocks": True},
            "paused",
        ),
    ],
)
def test_all_behind_the_one_that_did_not_fit_have_its_reason(
    of: Any, how: dict[str, Any], reason: str
) -> None:
    assert reasons(of, **how) == {reason: 3}


def test_what_came_after_the_last_schedule_has_only_arrived() -> None:
    assert reasons(scheduler([request()] * 3, []), short_of_blocks=True, arrived=2) == {
        "arrived": 2,
        "kv_blocks": 1,
    }


def test_before_0_18_those_that_found_no_slot_are_told_by_the_adapters_that_run() -> None:
    waiting = [request(adapter=1), request(adapter=2), request()]
    of = scheduler(waiting, [], running=8, lora_config=ONE_ADAPTER)
    del of.deferred_waiting
    of.running[0] = request(adapter=1)
    assert reasons(of) == {"lora_slot": 1, "batch_full": 2}


def test_more_set_aside_than_are_looked_at_still_sum_to_the_queue() -> None:
    aside = [request(adapter=2) for _ in range(1000)]
    of = scheduler(aside, aside, lora_config=ONE_ADAPTER)
    of.running = [request(adapter=1)]
    assert reasons(of) == {"lora_slot": 1000}


def test_oldest_wait_is_of_the_first_never_scheduled() -> None:
    part = WaitingReasons(scheduler([], []))
    for name, queued_s in (("a", 5.0), ("b", 6.0)):
        one = tracked(name)
        one.queued_s = queued_s
        part.unscheduled[name] = one
    assert scanned(part, now_s=7.5)["waiting_oldest_s"] == 2.5
