"""Hand-computed: a pool of 100 blocks in which each number can be followed by eye."""

from dataclasses import replace

import pytest

from vramscope.exporters.signals import kv as signals
from vramscope.exporters.signals.kv_samples import KvSample

# 3 requests on 12 blocks of 16: one shared prefix block, tails filled 4, 8 and 12 of 16.
# T = 9 full + 0.25 + 0.5 + 0.75 = 10.5, S = 1.5. 8 blocks wait for a transfer. 80 are free,
# 60 of them with a cached prefix; the watermark keeps 5.
POOL = KvSample(
    pool=0,
    blocks=100,
    live=10.5,
    slack=1.5,
    lookahead=0.25,
    held=8,
    evictable=60,
    clean=20,
    reserved=5,
    age_s=0.0,
)
FULL = replace(POOL, live=96.5, slack=0.5, held=3, evictable=0, clean=0, reserved=0)
IDLE = replace(POOL, live=0.0, slack=0.0, held=0, evictable=40, clean=60, reserved=0)


def test_logically_free_is_slack_and_free() -> None:
    assert signals.logically_free_blocks(POOL) == 81.5


def test_usable_is_free_without_the_reserved() -> None:
    assert signals.usable_blocks(POOL) == 75


def test_fragmentation_is_slack_and_reserved_over_logically_free() -> None:
    assert signals.fragmentation_index(POOL) == pytest.approx((1.5 + 5) / 81.5)


def test_fragmentation_is_one_minus_usable_over_logically_free() -> None:
    other = 1 - signals.usable_blocks(POOL) / signals.logically_free_blocks(POOL)
    assert signals.fragmentation_index(POOL) == pytest.approx(other)


def test_held_blocks_do_not_count_as_fragmented() -> None:
    more_held = replace(POOL, held=28, clean=0)
    assert signals.fragmentation_index(more_held) == pytest.approx((1.5 + 5) / 61.5)


def test_fragmentation_has_no_sample_when_under_one_percent_is_free() -> None:
    assert signals.fragmentation_index(FULL) is None


def test_fragmentation_has_a_sample_at_one_percent_free() -> None:
    assert signals.fragmentation_index(replace(FULL, live=96.0, slack=1.0)) == 1.0


def test_fragmentation_of_an_idle_pool_is_zero() -> None:
    assert signals.fragmentation_index(IDLE) == 0.0


def test_parts_are_over_the_pool() -> None:
    assert signals.slack_ratio(POOL) == 0.015
    assert signals.lookahead_ratio(POOL) == 0.0025
    assert signals.reserved_ratio(POOL) == 0.05
    assert signals.held_ratio(POOL) == 0.08


def test_waste_is_slack_over_the_blocks_of_running_requests() -> None:
    assert signals.kv_waste(POOL) == 1.5 / 12


def test_waste_has_no_sample_when_nothing_runs() -> None:
    assert signals.kv_waste(IDLE) is None


def test_exposure_is_evictable_over_free() -> None:
    assert signals.eviction_exposure(POOL) == 0.75


def test_exposure_has_no_sample_when_nothing_is_free() -> None:
    assert signals.eviction_exposure(FULL) is None


def test_an_engine_without_kv_cache_has_no_ratios() -> None:
    none = KvSample(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    assert signals.fragmentation_index(none) is None
    assert signals.slack_ratio(none) is None
    assert signals.held_ratio(none) is None
