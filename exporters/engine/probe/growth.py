"""The probe's part for growth: how fast each pool's free blocks go, by what takes them."""

import math
from collections.abc import Sequence
from typing import Any

from vramscope.exporters.engine.probe.hooks import Guard, hook
from vramscope.exporters.engine.probe.pools import Pools, pool_fields

__all__ = ["GROWTH_FIELDS", "WINDOW_S", "Growth"]

WINDOW_S = 10.0
"""Time constant of the averages: how far back "current growth" looks."""
FLOWS = ("decode", "prefill", "freed")
GROWTH_FIELDS = (
    *(f"growth_{flow}" for flow in FLOWS),
    *(f"growth_{flow}_per_s" for flow in FLOWS),
    "growth_per_s",
    "growth_variance",
    "growth_weight",
)


class Growth:
    """Follows what takes blocks from each pool and what gives them back.

    Blocks taken by decoding requests are the growth of their tables since their prefill ended.
    All others that left the free list were taken for prefill: new blocks, and cached ones
    taken back into use.
    """

    def __init__(self, scheduler: Any, pools: Pools, guard: Guard) -> None:
        self._scheduler = scheduler
        self._pools = pools
        self._decoding: dict[str, list[int]] = {}  # id -> table lengths when its decode began
        self._taken = [_Taken(tracker.pool, guard) for tracker in pools.trackers]
        self._scan_time_s: float | None = None
        self.scan_fields = pool_fields(len(pools.pools), GROWTH_FIELDS)

    def capabilities(self) -> dict[str, bool]:
        """Return whether what is given back is seen in every pool."""
        return {"growth": all(taken.attached for taken in self._taken)}

    def decodes(self, request_id: str) -> None:
        """Take in that a request's prefill is complete."""
        self._decoding[request_id] = self._lengths(request_id)

    def leaves(self, request_id: str) -> None:
        """Take in that a request is about to give its blocks back."""
        began = self._decoding.pop(request_id, None)
        if began is not None:
            lengths = self._lengths(request_id)
            for taken, now, before in zip(self._taken, lengths, began, strict=True):
                taken.decode_gone += now - before

    def scan(self, now_s: float) -> Sequence[float]:
        """Return the values of ``scan_fields``."""
        live = [0] * len(self._taken)
        for request_id, began in self._decoding.items():
            for pool, length in enumerate(self._lengths(request_id)):
                live[pool] += length - began[pool]
        elapsed_s = 0.0 if self._scan_time_s is None else now_s - self._scan_time_s
        self._scan_time_s = now_s
        idle = not self._scheduler.running
        values: list[float] = []
        for pool, (taken, decode) in enumerate(zip(self._taken, live, strict=True)):
            values += taken.scan(decode, elapsed_s, self._pools.usable[pool], idle)
        return values

    def _lengths(self, request_id: str) -> list[int]:
        """Return the blocks of a request by pool."""
        return [
            sum(len(manager.req_to_blocks.get(request_id, ())) for manager in managers)
            for managers in self._pools.by_pool
        ]


class _Taken:
    """One pool's flows: totals, and averages over about ``WINDOW_S``."""

    def __init__(self, pool: Any, guard: Guard) -> None:
        self.decode_gone = 0
        self._pool = pool
        self._free_at_start = self._free = int(pool.free_block_queue.num_free_blocks)
        self._freed = 0
        self._totals = [0.0] * len(FLOWS)
        self._per_s = [0.0] * len(FLOWS)
        self._usable: int | None = None
        self._mean = self._variance = self._weight = 0.0
        self.attached = hook(
            pool, "free_blocks", guard, before=self._before, after=self._after, spend=True
        )
        hook(pool, "unpin_blocks", guard, before=self._before, after=self._after, spend=True)

    def _before(self, *_: Any, **__: Any) -> None:
        self._free = self._pool.free_block_queue.num_free_blocks

    def _after(self, *_: Any, **__: Any) -> None:
        self._freed += self._pool.free_block_queue.num_free_blocks - self._free

    def scan(self, decoding: int, elapsed_s: float, usable: int, idle: bool) -> list[float]:
        """Return the pool's fields.

        Args:
            decoding: blocks that requests now decoding took since their prefill ended.
            elapsed_s: since the scan before.
            usable: U now.
            idle: nothing runs: what was learned is of a load that is gone.
        """
        free = self._pool.free_block_queue.num_free_blocks
        taken = self._free_at_start - free + self._freed
        decode = self.decode_gone + decoding
        totals = [decode, max(self._totals[1], taken - decode), self._freed]
        if idle:
            self._per_s = [0.0] * len(FLOWS)
            self._mean = self._variance = self._weight = 0.0
        elif elapsed_s > 0 and self._usable is not None:
            keep = math.exp(-elapsed_s / WINDOW_S)
            self._per_s = [
                keep * rate + (1 - keep) * (now - before) / elapsed_s
                for rate, now, before in zip(self._per_s, totals, self._totals, strict=True)
            ]
            rate = (self._usable - usable) / elapsed_s
            squared = elapsed_s * (rate - self._mean) ** 2
            self._mean = keep * self._mean + (1 - keep) * rate
            self._variance = keep * self._variance + (1 - keep) * squared
            self._weight = keep * self._weight + (1 - keep)
        self._totals, self._usable = totals, usable
        averages = [*self._per_s, self._mean, self._variance]
        return [*totals, *averages, self._weight]
