"""Counts what one block pool holds, as it changes: O(1) work per block operation."""

from collections.abc import Iterable, Iterator
from typing import Any

from vramscope.exporters.engine.probe.hooks import Guard, hook

__all__ = ["PoolTracker"]


class PoolTracker:
    """Running counts of one ``BlockPool``.

    Attributes:
        evictable: unreferenced blocks that have a prefix hash.
        extra_references: references beyond the first, summed over blocks.
        evictions: cached blocks overwritten or evicted.
        resurrections: unreferenced blocks taken back by a prefix hit.
        drift: difference found by the last ``resync``, in blocks; -1 before the first.
    """

    def __init__(self, pool: Any, guard: Guard) -> None:
        self.pool = pool
        self.evictions = 0
        self.resurrections = 0
        self.drift = -1
        self.evictable, self.extra_references = self.scan()
        self.attached = all(
            [  # a list: each is tried, whichever is missing
                hook(pool, "free_blocks", guard, before=self._before_free, spend=True),
                hook(pool, "touch", guard, before=self._before_touch, spend=True),
                hook(pool, "_maybe_evict_cached_block", guard, after=self._after_evict),
                hook(pool, "reset_prefix_cache", guard, after=self._after_reset),
            ]
        )
        # Of later releases: absent means there is nothing to count.
        hook(pool, "unpin_blocks", guard, before=self._before_unpin, spend=True)
        if hasattr(pool, "move_block_hashes"):
            self._watch_moves(guard)

    @property
    def blocks(self) -> int:
        """Usable blocks: the null block is not."""
        return int(self.pool.num_gpu_blocks) - 1

    @property
    def free(self) -> int:
        """Unreferenced blocks."""
        return int(self.pool.free_block_queue.num_free_blocks)

    @property
    def referenced(self) -> int:
        """Blocks somebody holds."""
        return self.blocks - self.free

    def scan(self) -> tuple[int, int]:
        """Count (evictable, extra references) from scratch: milliseconds for 100k blocks."""
        evictable = extra = 0
        for block in self.pool.blocks:
            if block.is_null:
                continue  # its reference count is not maintained
            if block.ref_cnt == 0:
                evictable += block.block_hash is not None
            else:
                extra += block.ref_cnt - 1
        return evictable, extra

    def resync(self) -> None:
        """Recount, keep the truth, and say how far the running counts were off."""
        evictable, extra = self.scan()
        self.drift = abs(evictable - self.evictable) + abs(extra - self.extra_references)
        self.evictable, self.extra_references = evictable, extra

    def _release(self, block: Any) -> None:
        """Count a reference about to be given back."""
        if block.is_null:
            return
        if block.ref_cnt > 1:
            self.extra_references -= 1
        elif block.block_hash is not None:
            self.evictable += 1

    def _before_free(self, ordered_blocks: Any) -> None:
        for block in _own(ordered_blocks, self.pool):
            self._release(block)

    def _before_unpin(self, blocks: Any, *_: Any, **__: Any) -> None:
        for block in blocks:
            self._release(block)

    def _before_touch(self, blocks: Any) -> None:
        for block in _flat(blocks):
            if block.is_null:
                continue
            if block.ref_cnt:
                self.extra_references += 1
            else:
                self.resurrections += 1
                if block.block_hash is not None:
                    self.evictable -= 1

    def _after_evict(self, evicted: bool, block: Any) -> None:
        if evicted:
            self.evictions += 1
            if block.ref_cnt == 0:
                self.evictable -= 1

    def _after_reset(self, done: bool, *_: Any, **__: Any) -> None:
        if done:
            self.evictable = 0

    def _watch_moves(self, guard: Guard) -> None:
        def count(src_block: Any, dst_block: Any) -> int:
            return sum(
                block.ref_cnt == 0 and block.block_hash is not None
                for block in (src_block, dst_block)
            )

        def before(src_block: Any, dst_block: Any) -> None:
            self.evictable -= count(src_block, dst_block)

        def after(_: Any, src_block: Any, dst_block: Any) -> None:
            self.evictable += count(src_block, dst_block)

        hook(self.pool, "move_block_hashes", guard, before=before, after=after)


def _own(blocks: Iterable[Any], pool: Any) -> Iterator[Any]:
    """Yield the blocks of ``pool``: later releases hand others on to theirs, which count them."""
    for block in blocks:
        if getattr(block, "pool", None) in (None, pool):
            yield block


def _flat(blocks: Iterable[Any]) -> Iterator[Any]:
    """Yield blocks, also from the sequences by group that 0.13 to 0.15 pass."""
    for item in blocks:
        if isinstance(item, (list, tuple)):
            yield from item
        else:
            yield item
