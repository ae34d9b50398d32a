"""What a page table adds up to: by pool, and by request."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from vramscope.exporters.blocks.page_table import (
    Block,
    PageTable,
    Pool,
    Request,
    State,
    token_share,
)
from vramscope.exporters.signals.kv_samples import KvSample

__all__ = ["RequestUsage", "Sharing", "free_runs", "pool_sample", "request_usage", "sharing"]


class Sharing(NamedTuple):
    """What requests have in common in one pool.

    Attributes:
        shared: blocks with more than one reference.
        saved: references beyond each block's first: blocks that sharing saves.
        duplicates: blocks that hold what a block before them holds, referenced or not.
    """

    shared: int
    saved: int
    duplicates: int


class RequestUsage(NamedTuple):
    """What one request holds, in all groups.

    Attributes:
        request: the request.
        blocks: blocks in its tables.
        shared: those that others hold too.
        slack: what its tokens leave empty of them, in block equivalents; None when it doesn't
            run.
    """

    request: Request
    blocks: int
    shared: int
    slack: float | None


def pool_sample(pool: Pool) -> KvSample:
    """Return the pool's split into live, slack, held, evictable and clean."""
    counts = dict.fromkeys(State, 0)
    live = 0.0
    for block in pool.blocks:
        counts[block.state] += 1
        live += block.fill
    return KvSample(
        pool=pool.index,
        blocks=len(pool.blocks),
        live=live,
        slack=counts[State.LIVE] - live,
        lookahead=0,
        held=counts[State.HELD],
        evictable=counts[State.EVICTABLE],
        clean=counts[State.CLEAN],
        reserved=pool.reserved,
        age_s=0,
    )


def sharing(blocks: Iterable[Block]) -> Sharing:
    """Return what requests have in common."""
    shared = saved = duplicates = 0
    for block in blocks:
        shared += block.references > 1
        saved += max(0, block.references - 1)
        duplicates += block.is_duplicate
    return Sharing(shared, saved, duplicates)


def free_runs(blocks: Sequence[Block]) -> list[int]:
    """Return the lengths of the runs of adjacent free blocks, longest first.

    Args:
        blocks: of one pool, by number.
    """
    runs = []
    # Adjacent blocks have adjacent numbers; a gap (the null block) ends a run.
    keyed = groupby(
        enumerate(blocks), lambda pair: (pair[1].references == 0, pair[1].number - pair[0])
    )
    for (is_free, _), run in keyed:
        if is_free:
            runs.append(sum(1 for _ in run))
    return sorted(runs, reverse=True)


def request_usage(table: PageTable) -> list[RequestUsage]:
    """Return what each request holds, the one with most blocks first."""
    by_number = [{block.number: block for block in pool.blocks} for pool in table.pools]
    blocks = [0] * len(table.requests)
    shared = [0] * len(table.requests)
    slack = [0.0] * len(table.requests)
    for row in table.tables:
        group = table.groups[row.group]
        computed = table.requests[row.request].computed_tokens or 0
        for place, number in enumerate(row.blocks):
            if number is None:
                continue
            blocks[row.request] += 1
            shared[row.request] += by_number[group.pool][number].references > 1
            if not group.whole:
                fill = token_share(place, group.block_size, computed, row.gone_tokens)
                slack[row.request] += 1 - fill
    usage = [
        RequestUsage(request, held, common, empty if request.is_running else None)
        for request, held, common, empty in zip(table.requests, blocks, shared, slack, strict=True)
    ]
    return sorted(usage, key=lambda used: (-used.blocks, used.request.name))
