"""Hand-computed: which prefill tokens are done for the first time, and which again."""

from types import SimpleNamespace
from typing import Any

from vramscope.exporters.engine.probe.requests import PrefillMeter, TrackedRequest, external_id


def tracked(name: str = "cmpl-x-0-0123abcd", prompt_tokens: int = 100) -> TrackedRequest:
    request: Any = SimpleNamespace(
        request_id=name, num_prompt_tokens=prompt_tokens, lora_request=None
    )
    return TrackedRequest(request, randomized=True)


def counts(meter: PrefillMeter) -> tuple[int, int]:
    return meter.prefill_tokens, meter.recomputed_tokens


def test_cached_tokens_are_not_computed() -> None:
    meter, one = PrefillMeter(), tracked()
    meter.begin(one, cached_tokens=64, schedule=1)
    assert meter.step({one.request.request_id: 36}, 1) == [one]
    assert counts(meter) == (36, 0)


def test_chunks_add_up_and_decoding_is_not_prefill() -> None:
    meter, one = PrefillMeter(), tracked()
    name = one.request.request_id
    meter.begin(one, 0, schedule=1)
    assert meter.step({name: 60}, 1) == []
    assert meter.step({name: 40}, 2) == [one]
    assert meter.step({name: 1}, 3) == []
    assert counts(meter) == (100, 0)


def test_recompute_after_preemption_is_what_lies_below_the_high_water_mark() -> None:
    meter, one = PrefillMeter(), tracked()
    name = one.request.request_id
    meter.begin(one, 0, schedule=1)
    meter.step({name: 100}, 1)
    one.high_water = 149  # 49 output tokens computed when it lost its blocks
    meter.begin(one, cached_tokens=64, schedule=60)
    assert meter.step({name: 86}, 60) == [one]  # 64 to 149, and the newest token beside
    assert counts(meter) == (100 + 85, 85)


def test_preempted_in_its_prefill_goes_on_past_the_mark() -> None:
    meter, one = PrefillMeter(), tracked()
    name = one.request.request_id
    meter.begin(one, 0, schedule=1)
    meter.step({name: 40}, 1)
    meter.end(name)
    one.high_water = 40
    meter.begin(one, 0, schedule=5)
    assert meter.step({name: 100}, 5) == [one]
    assert counts(meter) == (140, 40)


def test_second_preemption_counts_again() -> None:
    meter, one = PrefillMeter(), tracked()
    name = one.request.request_id
    for again in range(3):
        meter.begin(one, 0, schedule=again)
        meter.step({name: 100}, again)
        one.high_water = 100
    assert counts(meter) == (300, 200)


def test_output_in_flight_at_the_preemption_is_not_of_the_new_prefill() -> None:
    meter, one = PrefillMeter(), tracked()
    name = one.request.request_id
    meter.begin(one, 0, schedule=8)
    assert meter.step({name: 1}, 7) == []
    assert counts(meter) == (0, 0)
    assert meter.step({name: 100}, 8) == [one]


def test_tokens_in_flight_when_a_request_leaves_are_computed_all_the_same() -> None:
    meter, one = PrefillMeter(), tracked()
    name = one.request.request_id
    meter.begin(one, 0, schedule=1)
    meter.leave(name, {name: 60}, 1)
    meter.end(name)
    assert meter.step({name: 60}, 1) == []
    assert counts(meter) == (60, 0)


def test_external_id_is_what_the_caller_chose() -> None:
    assert external_id("chatcmpl-abc-1b2c3d4e") == "chatcmpl-abc"
    assert external_id("chatcmpl-abc-1b2c3d4e", randomized=False) == "chatcmpl-abc-1b2c3d4e"
    uuid = "cmpl-6ba7b810-9dad-11d1-80b4-00c04fd430c8-0"
    assert external_id(f"{uuid}-0a1b2c3d") == uuid
