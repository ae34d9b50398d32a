"""Walks a pool block by block, a stripe at each scan, for what no running count can tell."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from vramscope.exporters.engine.probe.blocks import HIT, NOT_HIT, PoolTracker
from vramscope.exporters.engine.probe.evictions import AGE_BOUNDS_S

__all__ = ["CENSUS_FIELDS", "Census"]

STRIPE = 256
"""Blocks of a scan: 0.1 ms at most. A pool of 100k is walked in a minute of work."""

CENSUS_FIELDS = (
    "census_begun_s",
    "drift",
    "duplicates",
    "free_seen",
    "free_run",
    "oldest_evictable_s",
    *(f"evictable_age_le_{bound:g}" for bound in AGE_BOUNDS_S),
    "evictable_age_le_inf",
)
UNKNOWN = float("nan")


class Census:
    """Counts a pool's blocks in order of their numbers, and sets its tracker right.

    A pool that fits a stripe is counted whole at each scan: then all is exact. In a larger one
    blocks change while others are counted, so a round's numbers are an estimate as old as its
    beginning.
    """

    def __init__(self, tracker: PoolTracker) -> None:
        self._tracker = tracker
        self._next = 0
        self._last: list[float] = [UNKNOWN] * len(CENSUS_FIELDS)
        self._begin(0.0)

    def _begin(self, now_s: float) -> None:
        self._begun_s = now_s
        self._next = 0
        self._wrong = self._duplicates = self._free = self._run = self._longest_run = 0
        self._oldest_since_s = now_s
        self._ages = [0] * (len(AGE_BOUNDS_S) + 1)

    def scan(self, now_s: float) -> Sequence[float]:
        """Count the next stripe; return the values of ``CENSUS_FIELDS`` of the last whole round.

        Args:
            now_s: by the tracker's clock.
        """
        if self._next == 0:
            self._begin(now_s)
        blocks = self._tracker.pool.blocks
        end = self._next + STRIPE
        self._count(blocks[self._next : end], now_s)
        self._next = end
        if end >= len(blocks):
            self._next = 0
            self._last = [
                self._begun_s,
                self._wrong,
                UNKNOWN if self._copies() is None else self._duplicates,
                self._free,
                self._longest_run,
                max(0.0, now_s - self._oldest_since_s) if any(self._ages) else UNKNOWN,
                *self._ages,
            ]
        return self._last

    def _copies(self) -> Any:
        """Return vLLM's blocks by hash: one block, or a dictionary of those that share it."""
        return getattr(self._tracker.pool.cached_block_hash_to_block, "_cache", None)

    def _count(self, blocks: Sequence[Any], now_s: float) -> None:
        tracker, copies, ages = self._tracker, self._copies() or {}, self._ages
        all_since_s, all_extra = tracker.since_s, tracker.extra
        run, last_since_s, place = self._run, 0.0, 0
        for block in blocks:
            if block.is_null:
                continue
            number, references = block.block_id, block.ref_cnt
            block_hash = block._block_hash  # noqa: SLF001  # the property costs a call
            since_s = all_since_s[number]
            evictable = since_s > NOT_HIT or since_s < HIT
            if references:
                wrong = evictable or all_extra[number] != references - 1
                run = 0
            else:
                wrong = evictable is (block_hash is None) or all_extra[number] != 0
                self._free += 1
                run += 1
                if run > self._longest_run:
                    self._longest_run = run
            if wrong:
                self._wrong += 1
                tracker.settle(block, now_s)
                since_s = all_since_s[number]
                evictable = since_s > NOT_HIT or since_s < HIT
            if block_hash is None:
                continue
            same = copies.get(block_hash)
            if type(same) is dict and next(iter(same)) != number:
                self._duplicates += 1
            if evictable:
                if since_s != last_since_s:  # neighbours were mostly freed together
                    last_since_s = since_s
                    place = bisect_left(AGE_BOUNDS_S, now_s - abs(since_s))
                    self._oldest_since_s = min(self._oldest_since_s, abs(since_s))
                ages[place] += 1
        self._run = run
