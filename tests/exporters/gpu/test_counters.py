"""Counters that only go up, by hand."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from vramscope.exporters.gpu.counters import MonotonicCounters
from vramscope.exporters.gpu.rates import Rates

KEY = ("GPU-a", "pcie")


def totals(*raws: float, scale: float = 1.0) -> list[float]:
    counters = MonotonicCounters()
    return [counters.advance(KEY, raw, "nvml", scale) for raw in raws]


def test_first_value_is_the_total_so_a_restart_of_the_exporter_changes_nothing() -> None:
    assert totals(7_000, 7_100) == [7_000, 7_100]


def test_32_bit_counter_that_wraps_goes_on() -> None:
    top = 2.0**32
    assert totals(top - 100, 50) == [top - 100, top + 50]


def test_64_bit_counter_that_wraps_goes_on() -> None:
    top = 2.0**64
    assert totals(top - 65536, 65536) == [top - 65536, top + 65536]


def test_counter_that_restarts_counts_from_0() -> None:
    assert totals(1_000, 1_500, 40, 60) == [1_000, 1_500, 1_540, 1_560]


def test_wide_counter_that_restarts_is_not_taken_for_one_that_wraps() -> None:
    assert totals(2.0**40, 2.0**20) == [2.0**40, 2.0**40 + 2.0**20]


def test_wrap_is_in_the_raw_unit() -> None:
    """Energy in millijoules wraps at 2^32 of them."""
    first, second = totals(2.0**32 - 1000, 1000, scale=1e-3)
    assert round(second - first, 6) == 2


def test_change_of_source_neither_falls_nor_jumps() -> None:
    counters = MonotonicCounters()
    assert counters.advance(KEY, 5_000, "nvml") == 5_000
    assert counters.advance(KEY, 90_000, "dcgm") == 5_000
    assert counters.advance(KEY, 90_010, "dcgm") == 5_010
    assert counters.advance(KEY, 5_200, "nvml") == 5_010


@given(
    st.lists(
        st.tuples(st.integers(0, 2**64), st.sampled_from(["nvml", "dcgm"])), min_size=2, max_size=20
    )
)
def test_no_total_ever_falls(readings: list[tuple[int, str]]) -> None:
    counters = MonotonicCounters()
    seen = [counters.advance(KEY, float(raw), source) for raw, source in readings]
    assert all(later >= earlier for earlier, later in pairwise(seen))


def test_rate_needs_two_readings() -> None:
    rates = Rates()
    assert rates.update(KEY, 1_000, at_s=10) is None
    assert rates.update(KEY, 1_500, at_s=12) == 250


def test_readings_a_moment_apart_keep_the_last_rate() -> None:
    rates = Rates()
    rates.update(KEY, 0, at_s=0)
    rates.update(KEY, 100, at_s=1)
    assert rates.update(KEY, 130, at_s=1.01) == 100
    assert rates.update(KEY, 300, at_s=2) == 200, "what came in between is not lost"


def test_mean_over_a_gap_is_not_the_rate_now() -> None:
    rates = Rates()
    rates.update(KEY, 0, at_s=0)
    assert rates.update(KEY, 100, at_s=121) is None
    assert rates.update(KEY, 150, at_s=122) == 50
