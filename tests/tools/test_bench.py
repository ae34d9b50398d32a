"""The benchmark's arithmetic and its file."""

import json
import random
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools" / "bench"))  # scripts run by path find each other like this

import figures  # noqa: E402
import ten_thousand  # noqa: E402

from vramscope.exporters.exposition.families import Families  # noqa: E402
from vramscope.exporters.exposition.rendered import Renderer  # noqa: E402


@pytest.mark.parametrize(("q", "value"), [(0, 1), (0.5, 50), (0.99, 99), (1, 100)])
def test_quantile_is_a_value_that_was_seen(q: float, value: float) -> None:
    assert figures.quantile(range(100, 0, -1), q) == value


def test_spread_is_even_rounds_against_odd_ones() -> None:
    one = figures.figure("x", [1.0, 3.0, 1.0, 3.0], "s", 2.5)
    assert (one.value, one.spread) == (2.0, 1.0)


def test_ratios_are_taken_within_a_round() -> None:
    drifting = figures.ratio_figure("x", [2.0, 20.0, 200.0], [1.0, 10.0, 100.0], 3)
    assert (drifting.value, drifting.spread) == (2.0, 0.0)


def test_file_and_table_say_what_is_over_its_target(tmp_path: Path) -> None:
    made = [figures.Figure("slow", 3.0, "s", 2.0), figures.Figure("told", 1.0, "bytes", None)]
    file = tmp_path / "new" / "x.json"
    figures.write(made, file)
    slow, told = json.loads(file.read_text())["figures"]
    assert slow == {
        "name": "slow", "value": 3.0, "unit": "s", "target": 2.0, "better": "lower", "spread": 0.0
    }  # fmt: skip
    assert told["target"] is None
    head, first, second = figures.table(made).splitlines()
    assert head.split() == ["figure", "median", "A/A", "target"]
    assert first.endswith("over")
    assert not second.endswith("over")


def test_page_of_the_bench_has_ten_thousand_series_that_change() -> None:
    chance, pages = random.Random(1), []  # noqa: S311 (a bench)
    for still in (0.0, 0.0, 0.5, 0.5):
        families = Families()
        ten_thousand.fill(families, chance, still=still)
        pages.append([x for x in Renderer().render(families).page().splitlines() if x[:1] != b"#"])
    assert {len(page) for page in pages} == {10_000}
    same = [sum(map(bytes.__eq__, *pair)) for pair in (pages[:2], pages[2:])]
    assert same[0] < 1000
    assert 5000 <= same[1] < 6000
