"""Hand-computed: what three contiguous allocators would reserve."""

from types import SimpleNamespace
from typing import Any

import pytest

from vramscope.exporters.engine.probe.static_waste import StaticWaste, power_of_two


@pytest.fixture
def pools() -> Any:
    return SimpleNamespace(computed={}, managers=[SimpleNamespace(req_to_blocks={})])


@pytest.fixture
def scheduler() -> Any:
    return SimpleNamespace(max_model_len=1000, requests={})


@pytest.fixture
def waste(scheduler: Any, pools: Any) -> StaticWaste:
    return StaticWaste(scheduler, pools)


def said(waste: StaticWaste, now_s: float) -> dict[str, float]:
    values = waste.scan(now_s)
    names = (name.removeprefix("static_") for name in waste.scan_fields)
    return dict(zip(names, values, strict=True))


def test_doubling_allocator_reserves_no_more_than_the_longest_sequence(
    waste: StaticWaste, pools: Any
) -> None:
    pools.computed = {"a": 65, "b": 600}
    found = said(waste, 10.0)
    assert found["tokens"] == 665
    assert found["power_of_two"] == 128 + 1000
    assert found["max_model_len"] == 2000


def test_request_that_holds_blocks_and_does_not_run_counts_too(
    waste: StaticWaste, pools: Any, scheduler: Any
) -> None:
    pools.managers[0].req_to_blocks.update(remote=[object()], unknown=[object()], empty=[])
    scheduler.requests["remote"] = SimpleNamespace(num_computed_tokens=100)
    scheduler.requests["empty"] = SimpleNamespace(num_computed_tokens=50)
    found = said(waste, 10.0)
    assert (found["tokens"], found["max_model_len"]) == (100, 1000)


def test_oracle_reserves_the_final_length_for_the_time_a_request_ran(
    waste: StaticWaste, pools: Any
) -> None:
    # Seen at 10, 11 and 13 s with 100, 110 and 130 tokens: 110 x 1 s + 130 x 2 s of 3 s.
    for now_s, tokens in ((10.0, 100), (11.0, 110), (13.0, 130)):
        pools.computed = {"a": tokens}
        found = said(waste, now_s)
    assert (found["held_token_seconds"], found["oracle_token_seconds"]) == (0, 0)
    waste.leaving(SimpleNamespace(request_id="a", num_tokens=140))
    pools.computed = {}
    found = said(waste, 14.0)
    assert found["held_token_seconds"] == 370.0
    assert found["oracle_token_seconds"] == 420.0


def test_time_between_preemption_and_resumption_is_nobodys(waste: StaticWaste, pools: Any) -> None:
    for now_s, computed in ((10.0, {"a": 100}), (11.0, {}), (20.0, {"a": 50}), (21.0, {"a": 60})):
        pools.computed = computed
        waste.scan(now_s)
    waste.leaving(SimpleNamespace(request_id="a", num_tokens=100))
    pools.computed = {}
    found = said(waste, 22.0)
    assert (found["held_token_seconds"], found["oracle_token_seconds"]) == (60.0, 100.0)


def test_request_gone_between_two_scans_leaves_nothing(waste: StaticWaste) -> None:
    waste.leaving(SimpleNamespace(request_id="a", num_tokens=100))
    assert said(waste, 10.0)["oracle_token_seconds"] == 0


@pytest.mark.parametrize(("tokens", "reserved"), [(0, 0), (1, 1), (2, 2), (3, 4), (1024, 1024)])
def test_power_of_two_is_not_below(tokens: int, reserved: int) -> None:
    assert power_of_two(tokens) == reserved
