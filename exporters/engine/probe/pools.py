"""The probe's part for KV memory: what each block pool holds, and for whom."""

from collections.abc import Callable, Sequence
from typing import Any

from vramscope.exporters.engine.probe.blocks import PoolTracker
from vramscope.exporters.engine.probe.census import CENSUS_FIELDS, Census
from vramscope.exporters.engine.probe.evictions import EvictedAges
from vramscope.exporters.engine.probe.hooks import Guard, hook
from vramscope.exporters.engine.probe.reservations import Reservations
from vramscope.exporters.engine.probe.slack import (
    LENGTH_BOUNDS,
    computed_by_request,
    length_class,
    scan_pool,
)

__all__ = ["POOL_FIELDS", "POOL_STEP_FIELDS", "Pools", "length_fields", "pool_fields"]

# Of a step: what has changed since the scan, for whoever decides at loop speed.
POOL_STEP_FIELDS = ("free_now", "evictable_now")


def length_fields(name: str) -> tuple[str, ...]:
    """Return the names of a quantity's fields by class of length."""
    return tuple(f"{name}_le_{bound}" for bound in (*LENGTH_BOUNDS, "inf"))


POOL_FIELDS = (
    "blocks",
    "live",
    "slack",
    "lookahead",
    "held",
    "evictable",
    "clean",
    "reserved",
    "shared",
    "extra_references",
    "evictions",
    "resurrections",
    *length_fields("slack"),
    *length_fields("entries"),
    *CENSUS_FIELDS,
    *EvictedAges().fields,
)


class Pools:
    """All block pools of one scheduler."""

    def __init__(
        self, scheduler: Any, reservations: Reservations, guard: Guard, clock: Callable[[], float]
    ) -> None:
        self._scheduler = scheduler
        self._reservations = reservations
        manager = scheduler.kv_cache_manager
        self.managers = manager.coordinator.single_type_managers
        self.pools = list({id(m.block_pool): m.block_pool for m in self.managers}.values())
        alone = len(self.pools) == 1
        self.trackers = [PoolTracker(pool, guard, clock, alone) for pool in self.pools]
        self.by_pool = [
            [manager for manager in self.managers if manager.block_pool is pool]
            for pool in self.pools
        ]
        self.usable = [tracker.free for tracker in self.trackers]
        """U of each pool at the last scan."""
        self.computed: dict[str, int] = {}
        """Computed tokens of each running request at the last scan."""
        self._censuses = [Census(tracker) for tracker in self.trackers]
        self._evicted = [EvictedAges() for _ in self.pools]
        # Of later releases: copy on write takes references that no method of the pool sees.
        hook(manager, "take_kv_cache_block_copies", guard, after=self._after_copies)
        self.step_fields = pool_fields(len(self.pools), POOL_STEP_FIELDS)
        self.scan_fields = (
            *pool_fields(len(self.pools), POOL_FIELDS),
            *(f"group{group}_entries" for group, _ in enumerate(self.managers)),
            *length_fields("length_requests"),
        )

    def capabilities(self) -> dict[str, bool]:
        """Return whether every pool is followed."""
        return {"blocks": all(tracker.attached for tracker in self.trackers)}

    def scan(self, now_s: float) -> Sequence[float]:
        """Return the values of ``scan_fields``."""
        self.computed = computed_by_request(self._scheduler.running)
        entries: dict[int, int] = {}
        values: list[float] = []
        for pool in range(len(self.pools)):
            values += self._scan_pool(pool, entries, now_s)
        lengths = [0] * (len(LENGTH_BOUNDS) + 1)
        for tokens in self.computed.values():
            lengths[length_class(tokens)] += 1
        return [*values, *(entries[id(manager)] for manager in self.managers), *lengths]

    def _scan_pool(self, pool: int, entries: dict[int, int], now_s: float) -> list[float]:
        """Return the values of ``POOL_FIELDS``; put each manager's table entries in ``entries``."""
        scheduler, tracker, managers = self._scheduler, self.trackers[pool], self.by_pool[pool]
        census = self._censuses[pool].scan(now_s)  # first: it sets the tracker right
        self._evicted[pool].add(tracker.take_evicted(), now_s)
        found = scan_pool(
            managers,
            self.computed,
            [blocks for _, blocks in getattr(scheduler, "deferred_frees", ())],
            tracker.referenced,
            tracker.extra_references,
            getattr(scheduler, "num_lookahead_tokens", 0),
        )
        entries.update(zip(map(id, managers), found.entries_by_group, strict=True))
        reserved = self._reservations.reserved(tracker)
        self.usable[pool] = tracker.free - reserved
        return [
            tracker.blocks,
            found.live,
            found.slack,
            found.lookahead,
            found.held,
            tracker.evictable,
            tracker.free - tracker.evictable,
            reserved,
            tracker.shared,
            tracker.extra_references,
            tracker.evictions,
            tracker.resurrections,
            *found.slack_by_length,
            *found.entries_by_length,
            *census,
            *self._evicted[pool].values(),
        ]

    def _after_copies(self, taken: Any, *_: Any, **__: Any) -> None:
        _, retained = taken
        for tracker in self.trackers if retained else ():
            of_pool = tracker.pool.blocks
            tracker.settle_all(
                block
                for block in retained
                if block.block_id < len(of_pool) and of_pool[block.block_id] is block
            )


def pool_fields(pools: int, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of each pool's fields."""
    return tuple(f"pool{pool}_{name}" for pool in range(pools) for name in names)
