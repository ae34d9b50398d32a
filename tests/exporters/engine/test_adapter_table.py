"""Counts by adapter: bounded, complete, and never going down."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vramscope.exporters.engine.probe.adapter_table import (
    OTHER,
    REVIEW_PERIOD_S,
    ROW_FIELDS,
    AdapterTable,
)
from vramscope.exporters.engine.record import Tier

GPU = ROW_FIELDS.index("requests_gpu")


def series(table: AdapterTable) -> dict[tuple[str, float], float]:
    """Return requests of tier gpu by (adapter, turn), as a reader would name the series."""
    found: dict[tuple[str, float], float] = {(OTHER, 0): table.rows[-1][GPU]}
    for owner, row in zip(table.owners, table.rows, strict=False):
        if owner is not None:
            found[owner] = row[GPU]
    return found


def test_first_adapters_have_rows_of_their_own_and_the_rest_are_other() -> None:
    table = AdapterTable(2, now_s=0.0)
    for name in ("a", "b", "c", "a", "d"):
        table.count_request(name, Tier.GPU)
    assert series(table) == {("a", 1): 2, ("b", 2): 1, (OTHER, 0): 2}


def test_ten_thousand_names_take_no_more_room_than_two() -> None:
    table = AdapterTable(2, now_s=0.0)
    for number in range(10_000):
        table.count_request(f"attack-{number}", Tier.DISK)
    assert len(table.values()) == 3 * len(ROW_FIELDS)
    assert len(table.state()) == 2
    assert len(table._traffic) <= 1024


def test_name_used_once_pushes_nobody_out() -> None:
    table = AdapterTable(1, now_s=0.0)
    table.count_request("a", Tier.GPU)
    for number in range(1000):
        table.count_request(f"once-{number}", Tier.GPU)
    assert not table.review(REVIEW_PERIOD_S)
    assert [owner and owner[0] for owner in table.owners] == ["a"]


def test_much_busier_adapter_takes_the_row_after_ten_minutes_and_starts_at_zero() -> None:
    table = AdapterTable(1, now_s=0.0)
    table.count_request("a", Tier.GPU)
    for _ in range(50):
        table.count_request("b", Tier.GPU)
    assert not table.review(REVIEW_PERIOD_S - 1)
    assert table.review(REVIEW_PERIOD_S)
    assert series(table) == {("b", 2): 0, (OTHER, 0): 50}
    table.count_request("a", Tier.GPU)
    assert series(table) == {("b", 2): 0, (OTHER, 0): 51}


def test_adapter_called_other_and_one_with_an_endless_name_have_no_row() -> None:
    table = AdapterTable(2, now_s=0.0)
    table.count_request(OTHER, Tier.GPU)
    table.count_request("x" * 201, Tier.GPU)
    assert table.owners == [None, None]


steps = st.lists(
    st.one_of(
        st.sampled_from([*(f"a{number}" for number in range(8)), OTHER]),
        st.just(None),
    ),
    max_size=300,
)


@given(steps)
def test_no_series_goes_down_and_requests_are_counted_once(names: list[Any]) -> None:
    table, now_s, sent = AdapterTable(3, now_s=0.0), 0.0, 0
    highest: Counter[tuple[str, float]] = Counter()
    seen: set[tuple[str, float]] = set()
    for name in names:
        if name is None:
            now_s += REVIEW_PERIOD_S
            table.review(now_s)
        else:
            for _ in range(20):
                table.count_request(name, Tier.GPU)
            sent += 20
        now = series(table)
        for key, count in now.items():
            assert count >= highest[key]
            highest[key] = int(count)
        ended = seen - set(now)
        seen |= set(now)
        assert sum(now.values()) + sum(highest[key] for key in ended) == sent
