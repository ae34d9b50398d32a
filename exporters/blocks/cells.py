"""Cells of a picture: each one block, or a run of blocks where there are more than room for."""

from collections.abc import Sequence
from typing import NamedTuple

from vramscope.exporters.blocks.page_table import Block, State

__all__ = ["LAYERS", "Cell", "cells", "run_length"]

LAYERS = ("live", "slack", "held", "evictable", "clean")
"""What a cell is made of, from its bottom to its top."""
ROUNDING = 1e-9
"""Shares below it come from adding fractions."""


class Cell(NamedTuple):
    """A run of adjacent places, and what is in them.

    ``live + slack + held + evictable + clean + gone`` is ``blocks``.

    Attributes:
        first: the first place.
        blocks: how many places there are.
        live: slots that hold live tokens, in block equivalents.
        slack: slots of the same blocks that hold none.
        held: blocks of no running request.
        evictable: unreferenced blocks with a cached prefix.
        clean: unreferenced blocks with nothing.
        gone: places of a table whose block was given back: its tokens left the window.
        shared: blocks with more than one reference.
        references: of the block held most often.
    """

    first: int
    blocks: int
    live: float
    slack: float
    held: int
    evictable: int
    clean: int
    gone: int
    shared: int
    references: int

    def shares(self) -> dict[str, float]:
        """Return the share of the cell by layer, where it has one."""
        parts = zip(LAYERS, self[2:7], strict=True)
        return {name: amount / self.blocks for name, amount in parts if amount > ROUNDING}


def cells(places: Sequence[Block | None], run: int, first: int = 0) -> list[Cell]:
    """Cut a sequence of places into cells of ``run``.

    Args:
        places: blocks in memory order, or in a request's; None where there is none any more.
        run: places a cell stands for; the last may stand for fewer.
        first: number of the first place.
    """
    return [
        _cell(places[start : start + run], first + start) for start in range(0, len(places), run)
    ]


def _cell(places: Sequence[Block | None], first: int) -> Cell:
    blocks = [block for block in places if block is not None]
    live = sum(block.fill for block in blocks)
    counts = dict.fromkeys(State, 0)
    for block in blocks:
        counts[block.state] += 1
    return Cell(
        first,
        len(places),
        live,
        counts[State.LIVE] - live,
        counts[State.HELD],
        counts[State.EVICTABLE],
        counts[State.CLEAN],
        len(places) - len(blocks),
        sum(block.references > 1 for block in blocks),
        max((block.references for block in blocks), default=0),
    )


def run_length(places: int, room: int) -> int:
    """Return how many places a cell must stand for: 1, 2, 5, 10, 20, 50 and so on.

    >>> run_length(100_000, room=6_000)
    20
    """
    scale = 1
    while True:
        for step in (1, 2, 5):
            if step * scale * room >= places:
                return step * scale
        scale *= 10
