"""The probe's part for KV memory: what each block pool holds."""

from collections.abc import Sequence
from typing import Any

from vramscope.exporters.engine.probe.blocks import PoolTracker
from vramscope.exporters.engine.probe.hooks import Guard
from vramscope.exporters.engine.probe.slack import scan_pool

__all__ = ["POOL_FIELDS", "POOL_STEP_FIELDS", "Pools", "pool_fields"]

RESYNC_PERIOD_S = 30.0

# Of a step: what has changed since the scan, for whoever decides at loop speed.
POOL_STEP_FIELDS = ("free_now", "evictable_now")
POOL_FIELDS = (
    "blocks",
    "live",
    "slack",
    "lookahead",
    "held",
    "evictable",
    "clean",
    "reserved",
    "evictions",
    "resurrections",
    "drift",
)


class Pools:
    """All block pools of one scheduler."""

    def __init__(self, scheduler: Any, guard: Guard) -> None:
        self._scheduler = scheduler
        self.managers = scheduler.kv_cache_manager.coordinator.single_type_managers
        self.pools = list({id(m.block_pool): m.block_pool for m in self.managers}.values())
        self.trackers = [PoolTracker(pool, guard) for pool in self.pools]
        self.by_pool = [
            [manager for manager in self.managers if manager.block_pool is pool]
            for pool in self.pools
        ]
        self.usable = [tracker.free for tracker in self.trackers]
        """U of each pool at the last scan."""
        self._resync_time_s = 0.0
        self.step_fields = pool_fields(len(self.pools), POOL_STEP_FIELDS)
        self.scan_fields = pool_fields(len(self.pools), POOL_FIELDS)

    def capabilities(self) -> dict[str, bool]:
        """Return whether every pool is followed."""
        return {"blocks": all(tracker.attached for tracker in self.trackers)}

    def step(self) -> list[float]:
        """Return the values of ``step_fields``."""
        return [n for tracker in self.trackers for n in (tracker.free, tracker.evictable)]

    def scan(self, now_s: float) -> Sequence[float]:
        """Return the values of ``scan_fields``."""
        scheduler = self._scheduler
        if now_s - self._resync_time_s >= RESYNC_PERIOD_S:
            for tracker in self.trackers:
                tracker.resync()
            self._resync_time_s = now_s
        deferred = [blocks for _, blocks in getattr(scheduler, "deferred_frees", ())]
        values: list[float] = []
        for pool, (tracker, managers) in enumerate(zip(self.trackers, self.by_pool, strict=True)):
            found = scan_pool(
                managers,
                scheduler.running,
                deferred,
                tracker.referenced,
                tracker.extra_references,
                getattr(scheduler, "num_lookahead_tokens", 0),
            )
            reserved = self._reserved(tracker)
            self.usable[pool] = tracker.free - reserved
            values += [
                tracker.blocks,
                *found,
                tracker.evictable,
                tracker.free - tracker.evictable,
                reserved,
                tracker.evictions,
                tracker.resurrections,
                tracker.drift,
            ]
        return values

    def _reserved(self, tracker: PoolTracker) -> int:
        """Return R: free blocks that a new request may not take."""
        scheduler = self._scheduler
        watermark = getattr(scheduler.kv_cache_manager, "watermark_blocks", 0)
        reserved = watermark if scheduler.running else 0
        in_flight = getattr(scheduler, "_inflight_prefill_reserved_blocks", None)
        if in_flight is not None:
            reserved += in_flight()
        return int(min(reserved, tracker.free))


def pool_fields(pools: int, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of each pool's fields."""
    return tuple(f"pool{pool}_{name}" for pool in range(pools) for name in names)
