"""Cells and runs, by hand."""

import pytest

from vramscope.exporters.blocks.cells import Cell, cells, run_length
from vramscope.exporters.blocks.page_table import Block, State
from vramscope.exporters.blocks.usage import Sharing, free_runs, sharing

LIVE = Block(1, State.LIVE, 0.25, 2, None, (0, 1))
HELD = Block(2, State.HELD, 0.0, 1, None, ())
CACHED = Block(3, State.EVICTABLE, 0.0, 0, 3, ())
CLEAN = Block(4, State.CLEAN, 0.0, 0, None, ())


def test_cell_of_a_run_is_the_sum_of_its_blocks() -> None:
    (cell,) = cells([LIVE, HELD, CACHED, CLEAN, None], run=5, first=1)
    assert cell == Cell(1, 5, 0.25, 0.75, 1, 1, 1, gone=1, shared=1, references=2)
    assert cell.shares() == {
        "live": 0.05,
        "slack": 0.15,
        "held": 0.2,
        "evictable": 0.2,
        "clean": 0.2,
    }


def test_last_cell_may_be_shorter() -> None:
    assert [cell.blocks for cell in cells([CLEAN] * 7, run=3)] == [3, 3, 1]
    assert [cell.first for cell in cells([CLEAN] * 7, run=3, first=1)] == [1, 4, 7]


def test_full_block_of_a_size_that_binary_fractions_miss_has_no_slack() -> None:
    full = LIVE._replace(fill=sum([0.1] * 10))
    assert list(cells([full], run=1)[0].shares()) == ["live"]


@pytest.mark.parametrize(
    ("places", "room", "run"), [(0, 10, 1), (10, 10, 1), (11, 10, 2), (21, 10, 5), (1000, 1, 1000)]
)
def test_runs_are_round_and_fit(places: int, room: int, run: int) -> None:
    assert run_length(places, room) == run


def test_free_runs_end_at_used_blocks_and_at_gaps() -> None:
    numbers = {1: 0, 2: 0, 3: 1, 4: 0, 6: 0, 7: 0, 8: 0}  # 5 is missing
    blocks = [CLEAN._replace(number=n, references=r) for n, r in numbers.items()]
    assert free_runs(blocks) == [3, 2, 1]


def test_full_pool_has_no_free_run() -> None:
    assert free_runs([HELD]) == []


def test_sharing_counts_what_it_saves() -> None:
    copy = CACHED._replace(number=5)
    thrice = LIVE._replace(number=6, references=3)
    assert sharing([LIVE, thrice, HELD, CACHED, copy]) == Sharing(2, saved=3, duplicates=1)
