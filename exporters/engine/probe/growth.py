"""The probe's part for growth: how fast each pool's free blocks go, by what takes them."""

import math
from collections.abc import Sequence
from typing import Any

from vramscope.exporters.engine.probe.blocks import PoolTracker
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

    def __init__(self, scheduler: Any, pools: Pools) -> None:
        self._scheduler = scheduler
        self._pools = pools
        self._decoding: dict[str, list[int]] = {}  # id -> table lengths when its decode began
        self._flows = [_Flows(tracker) for tracker in pools.trackers]
        self._scan_time_s: float | None = None
        self.scan_fields = pool_fields(len(pools.pools), GROWTH_FIELDS)

    def capabilities(self) -> dict[str, bool]:
        """Return whether every pool is followed."""
        return {"growth": all(tracker.attached for tracker in self._pools.trackers)}

    def decodes(self, request_id: str) -> None:
        """Take in that a request's prefill is complete."""
        lengths = self._lengths(request_id)
        self._decoding[request_id] = lengths
        for flows, length in zip(self._flows, lengths, strict=True):
            flows.began += length

    def leaves(self, request_id: str) -> None:
        """Take in that a request is about to give its blocks back."""
        began = self._decoding.pop(request_id, None)
        if began is not None:
            lengths = self._lengths(request_id)
            for flows, now, before in zip(self._flows, lengths, began, strict=True):
                flows.decode_gone += now - before
                flows.began -= before

    def scan(self, now_s: float) -> Sequence[float]:
        """Return the values of ``scan_fields``."""
        elapsed_s = 0.0 if self._scan_time_s is None else now_s - self._scan_time_s
        self._scan_time_s = now_s
        idle = not self._scheduler.running
        values: list[float] = []
        for pool, flows in enumerate(self._flows):
            values += flows.scan(self._decoded(pool), elapsed_s, self._pools.usable[pool], idle)
        return values

    def _decoded(self, pool: int) -> int:
        """Return the blocks that requests now decoding took since their prefill ended.

        All tables less those of the others, since these are few.
        """
        blocks = -self._flows[pool].began
        for manager in self._pools.by_pool[pool]:
            tables = manager.req_to_blocks
            blocks += sum(map(len, tables.values()))
            blocks -= sum(len(tables[other]) for other in tables.keys() - self._decoding.keys())
        return blocks

    def _lengths(self, request_id: str) -> list[int]:
        """Return the blocks of a request by pool."""
        return [
            sum(len(manager.req_to_blocks.get(request_id, ())) for manager in managers)
            for managers in self._pools.by_pool
        ]


class _Flows:
    """One pool's flows: totals, and averages over about ``WINDOW_S``.

    Attributes:
        decode_gone: blocks that decoding took, of requests that have left.
        began: blocks that requests now decoding had when their decode began.
    """

    def __init__(self, tracker: PoolTracker) -> None:
        self.decode_gone = self.began = 0
        self._tracker = tracker
        self._free_at_start = tracker.free
        self._totals = [0.0] * len(FLOWS)
        self._per_s = [0.0] * len(FLOWS)
        self._usable: int | None = None
        self._mean = self._variance = self._weight = 0.0

    def scan(self, decoding: int, elapsed_s: float, usable: int, idle: bool) -> list[float]:
        """Return the pool's fields.

        Args:
            decoding: blocks that requests now decoding took since their prefill ended.
            elapsed_s: since the scan before.
            usable: U now.
            idle: nothing runs: what was learned is of a load that is gone.
        """
        freed = self._tracker.freed
        taken = self._free_at_start - self._tracker.free + freed
        decode = self.decode_gone + decoding
        totals = [decode, max(self._totals[1], taken - decode), freed]
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
