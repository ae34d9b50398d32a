"""The forecast against hand-computed values and against walks drawn at random."""

import random
from dataclasses import replace

import pytest

from vramscope.exporters.signals.exhaustion import HORIZON_S, exhaustion
from vramscope.exporters.signals.kv_samples import GrowthSample

STEADY = GrowthSample(0, {}, 0, {}, 0.0, growth_per_s=2.0, variance=0.0, weight=1.0)


def test_growth_without_variance_has_no_spread() -> None:
    assert exhaustion(50, STEADY) == (25.0, 25.0, 25.0)


def test_young_average_is_taken_for_what_it_covers() -> None:
    # Half of the average is still the zero it began with: the load it saw grew by 4 a second.
    assert exhaustion(50, replace(STEADY, weight=0.5)) == (12.5, 12.5, 12.5)


@pytest.mark.parametrize("growth_per_s", [0.0, -3.0])
def test_pool_that_does_not_grow_has_no_forecast(growth_per_s: float) -> None:
    assert exhaustion(50, replace(STEADY, growth_per_s=growth_per_s, variance=9.0)) is None


def test_first_second_has_no_forecast() -> None:
    assert exhaustion(50, replace(STEADY, weight=0.09)) is None


def test_nothing_usable_is_exhausted_now() -> None:
    assert exhaustion(0, replace(STEADY, growth_per_s=-1.0)) == (0.0, 0.0, 0.0)


def test_past_the_horizon_there_is_no_forecast() -> None:
    assert exhaustion(2.0 * HORIZON_S, STEADY) == (HORIZON_S, HORIZON_S, HORIZON_S)
    assert exhaustion(2.0 * HORIZON_S + 1, STEADY) is None


def test_only_the_late_side_may_be_past_the_horizon() -> None:
    forecast = exhaustion(1000.0, replace(STEADY, variance=200.0))
    assert forecast is not None
    assert forecast.earliest < forecast.median < HORIZON_S
    assert forecast.latest is None


def test_eight_of_ten_walks_end_within_the_spread() -> None:
    growth = replace(STEADY, growth_per_s=5.0, variance=60.0)
    forecast = exhaustion(100.0, growth)
    assert forecast is not None
    assert forecast.latest is not None
    draw = random.Random(1)  # noqa: S311  # the same walks in each run
    step_s, ends = 0.02, []
    for _ in range(600):
        left, at_s = 100.0, 0.0
        while left > 0:
            left -= draw.gauss(5.0 * step_s, (60.0 * step_s) ** 0.5)
            at_s += step_s
        ends.append(at_s)
    early = sum(end < forecast.earliest for end in ends) / len(ends)
    late = sum(end > forecast.latest for end in ends) / len(ends)
    half = sum(end < forecast.median for end in ends) / len(ends)
    assert early == pytest.approx(0.1, abs=0.04)
    assert late == pytest.approx(0.1, abs=0.04)
    assert half == pytest.approx(0.5, abs=0.06)
