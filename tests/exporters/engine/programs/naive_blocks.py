"""A block pool's numbers counted the slow way, from vLLM's own objects, for tests.

Shares no code with the probe. ``Watched`` takes a real pool over and notes what happens to each
block in plain dictionaries; ``recount`` looks at every block and every table.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

AGES_S = (1, 5, 30, 120, 600, 3600)
LENGTHS = (128, 512, 2048, 8192, 32768)


class Watched:
    """What happened to each block of a pool, noted before and after vLLM's own methods."""

    def __init__(self, pool: Any, clock: Callable[[], float]) -> None:
        self.pool = pool
        self.freed_at_s: dict[int, float] = {}
        self.hit: set[int] = set()
        self.evictions = self.resurrections = 0
        self.evicted: list[tuple[bool, float]] = []
        self.just_evicted: list[tuple[bool, float]] = []
        pool.__class__ = watched(type(pool), self, clock)

    def note_eviction(self, block: Any) -> None:
        """Note a block about to lose its hash, if it has one."""
        if block.block_hash is None:
            return
        self.evictions += 1
        if block.ref_cnt == 0:
            freed_s = self.freed_at_s.pop(block.block_id)
            self.just_evicted.append((block.block_id in self.hit, freed_s))
        self.hit.discard(block.block_id)

    def note_touched(self, blocks: Iterable[Any]) -> None:
        """Note blocks about to be taken into use."""
        for block in blocks:
            if not block.is_null:
                self.resurrections += self.freed_at_s.pop(block.block_id, None) is not None
                self.hit.add(block.block_id)

    def note_freed(self, blocks: Iterable[Any], now_s: float) -> None:
        """Note since when blocks are free and cached."""
        for block in blocks:
            if block.pool is not self.pool or block.is_null:
                continue
            if block.ref_cnt == 0 and block.block_hash is not None:
                self.freed_at_s[block.block_id] = now_s

    def truth(self, now_s: float) -> dict[str, float]:
        """Return what the probe should say of the past, and of each block.

        Args:
            now_s: of the scan, which dates the evictions since the one before.
        """
        self.evicted += [(hit, now_s - freed_s) for hit, freed_s in self.just_evicted]
        self.just_evicted.clear()
        found: dict[str, float] = {
            "evictions": self.evictions,
            "resurrections": self.resurrections,
            **recount_blocks(self.pool),
        }
        for reuse, hit in (("hit", True), ("never_hit", False)):
            ages = [age_s for had, age_s in self.evicted if had is hit]
            for bound, count in classes(ages, AGES_S, "")[:-1]:
                found[f"evicted_{reuse}_age_s_le_{bound}"] = count
            found[f"evicted_{reuse}_age_s_count"] = len(ages)
            found[f"evicted_{reuse}_age_s_sum"] = sum(ages)
        ages = [now_s - freed_s for freed_s in self.freed_at_s.values()]
        for bound, count in classes(ages, AGES_S, "inf"):
            found[f"evictable_age_le_{bound}"] = count
        if ages:
            found["oldest_evictable_s"] = max(ages)
        return found


def watched(base: Any, watch: Watched, clock: Callable[[], float]) -> Any:
    """Return a subclass of a pool's class that tells ``watch``."""

    class WatchedPool(base):  # type: ignore[misc]
        def _maybe_evict_cached_block(self, block: Any) -> Any:
            watch.note_eviction(block)
            return super()._maybe_evict_cached_block(block)

        def touch(self, blocks: Any) -> None:
            watch.note_touched(blocks)
            super().touch(blocks)

        def free_blocks(self, ordered_blocks: Any) -> None:
            blocks = list(ordered_blocks)
            super().free_blocks(blocks)
            watch.note_freed(blocks, clock())

        def unpin_blocks(self, blocks: Any, on_reuse: Any) -> None:
            super().unpin_blocks(blocks, on_reuse)
            watch.note_freed(blocks, clock())

        def reset_prefix_cache(self) -> bool:
            done: bool = super().reset_prefix_cache()
            if done:
                watch.freed_at_s.clear()
                watch.hit.clear()
            return done

    return WatchedPool


def recount_blocks(pool: Any) -> dict[str, float]:
    """Look at every block."""
    blocks = [block for block in pool.blocks if not block.is_null]
    free = [block.ref_cnt == 0 for block in blocks]
    runs = "".join(" #"[one] for one in free).split()
    same = Counter(block.block_hash for block in blocks if block.block_hash is not None)
    return {
        "blocks": len(blocks),
        "evictable": sum(b.ref_cnt == 0 and b.block_hash is not None for b in blocks),
        "clean": sum(b.ref_cnt == 0 and b.block_hash is None for b in blocks),
        "shared": sum(b.ref_cnt > 1 for b in blocks),
        "extra_references": sum(b.ref_cnt - 1 for b in blocks if b.ref_cnt > 1),
        "duplicates": sum(count - 1 for count in same.values()),
        "free_seen": sum(free),
        "free_run": max(map(len, runs), default=0),
        "drift": 0,
    }


def recount_tables(managers: Iterable[Any], pool: Any, running: dict[str, int]) -> dict[str, float]:
    """Look at every block of every table.

    Args:
        managers: of all groups; those of other pools are passed over.
        pool: the pool.
        running: computed tokens by request.
    """
    fill: dict[int, tuple[float, int]] = {}  # block -> how full at best, length of that request
    entries: Counter[str] = Counter()
    groups = []
    for manager in managers:
        if manager.block_pool is not pool:
            continue
        size, spec = manager.block_size, type(manager.kv_cache_spec).__name__
        tables = manager.req_to_blocks.values()
        groups.append(sum(not block.is_null for table in tables for block in table))
        for request_id, tokens in running.items():
            skipped = max(0, manager.get_num_skipped_tokens(tokens))
            for index, block in enumerate(manager.req_to_blocks.get(request_id, ())):
                if block.is_null:
                    continue
                entries[length(tokens)] += 1
                slots = range(index * size, (index + 1) * size)
                live = sum(skipped <= slot < tokens for slot in slots) / size
                live = 1.0 if spec == "MambaSpec" else live
                if (live, -tokens) > fill.get(block.block_id, (-1.0, 0)):
                    fill[block.block_id] = (live, -tokens)
    slack: defaultdict[str, float] = defaultdict(float)
    for live, tokens in fill.values():
        slack[length(-tokens)] += 1 - live
    return {
        "live": sum(live for live, _ in fill.values()),
        "slack": len(fill) - sum(live for live, _ in fill.values()),
        "held": sum(b.ref_cnt > 0 and b.block_id not in fill for b in pool.blocks[1:]),
        **{f"slack_le_{bound}": slack[str(bound)] for bound in (*LENGTHS, "inf")},
        **{f"entries_le_{bound}": entries[str(bound)] for bound in (*LENGTHS, "inf")},
        **{f"group{index}_entries": count for index, count in enumerate(groups)},
    }


def length(tokens: int) -> str:
    """Return the class of a request's length."""
    return next((str(bound) for bound in LENGTHS if tokens <= bound), "inf")


def classes(values: Iterable[float], bounds: Iterable[float], last: str) -> list[tuple[str, int]]:
    """Count values by the first bound that is not below."""
    found = dict.fromkeys((*map(str, bounds), last), 0)
    for value in values:
        found[next((str(bound) for bound in bounds if value <= bound), last)] += 1
    return list(found.items())
