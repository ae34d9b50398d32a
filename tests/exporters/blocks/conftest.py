"""Page tables as an engine with one pool and one group would show them."""

import random
from collections.abc import Callable

import pytest

from vramscope.exporters.blocks.page_table import (
    Block,
    Group,
    PageTable,
    Pool,
    Request,
    State,
    Table,
    token_share,
)

SIZE = 16

Make = Callable[..., PageTable]


def make_page_table(
    blocks: int,
    tokens: list[int],
    shared: int = 0,
    cached: float = 0.6,
    held: int = 0,
    adapters: int = 3,
) -> PageTable:
    """Return a page table; where in memory its blocks lie is drawn, always alike.

    Args:
        blocks: usable blocks.
        tokens: computed tokens of each running request.
        shared: leading blocks that all requests have in common.
        cached: share of the free blocks that hold a cached prefix.
        held: blocks of a request that left and whose blocks are not freed yet.
        adapters: how many there are; requests have one after the other, and none.
    """
    draw = random.Random(7)  # noqa: S311  # always the same is the point
    numbers = list(range(1, blocks + 1))
    draw.shuffle(numbers)
    prefix = tuple(numbers.pop() for _ in range(shared))
    rows: list[Table] = []
    requests: list[Request] = []
    holders: dict[int, list[int]] = {}
    fills: dict[int, float] = {}
    for index, computed in enumerate(tokens):
        adapter = f"ad{index % (adapters + 1)}" if index % (adapters + 1) < adapters else None
        name = f"{draw.getrandbits(64):016x}"
        requests.append(Request(name, "running", computed, computed - 9, 9, adapter))
        own = -(-computed // SIZE) - shared
        table = (*prefix, *(numbers.pop() for _ in range(max(0, own))))
        rows.append(Table(0, index, 0, table))
        for place, number in enumerate(table):
            holders.setdefault(number, []).append(index)
            fills[number] = max(fills.get(number, 0), token_share(place, SIZE, computed))
    if held:
        requests.append(Request("f" * 16, "finished", None, None, None, None))
        table = tuple(numbers.pop() for _ in range(held))
        rows.append(Table(0, len(tokens), 0, table))
        holders |= {number: [len(tokens)] for number in table}
    made = []
    for number in range(1, blocks + 1):
        who = tuple(holders.get(number, ()))
        hashed = fills.get(number) == 1 if who else draw.random() < cached
        in_use = State.LIVE if number in fills else State.HELD
        free = State.EVICTABLE if hashed else State.CLEAN
        state = in_use if who else free
        twin = number if hashed else None
        made.append(Block(number, state, fills.get(number, 0.0), len(who), twin, who))
    return PageTable(
        "chat-0",
        "meta-llama/Llama-3.1-8B-Instruct",
        "0.32.0",
        1000.0,
        1_796_078_591.0,
        0.0183,
        (Pool(0, tuple(made), reserved=blocks // 100),),
        (Group(0, "FullAttentionSpec", SIZE, whole=False),),
        tuple(requests),
        tuple(rows),
    )


@pytest.fixture
def make() -> Make:
    """Makes a page table: arguments as of ``make_page_table``."""
    return make_page_table
