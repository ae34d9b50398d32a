"""Counts what one block pool holds, as it changes: O(1) work per block operation."""

import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from vramscope.exporters.engine.probe.hooks import Guard, hook

__all__ = ["HIT", "NOT_HIT", "PoolTracker"]

NOT_HIT = 0.0
HIT = -sys.float_info.min
"""What ``since_s`` has for a block that is not evictable, without and with a hit since it was
filled."""


class PoolTracker:
    """Running counts of one ``BlockPool``, and what they are made of block by block.

    So each block can be checked and set right by itself (``settle``), and no scan of the whole
    pool is ever needed.

    Args:
        pool: vLLM's.
        guard: runs the hooks.
        clock: the host's monotonic clock, seconds.
        alone: False where the pool may be handed the blocks of others, which it hands on.

    Attributes:
        extra_references: references beyond the first, summed over blocks.
        shared: blocks with more than one reference.
        resurrections: cached blocks taken back into use while free.
        freed: blocks that came back to the free list.
        since_s: by block, the time since which it is evictable, negative if it has had a hit;
            ``NOT_HIT`` or ``HIT`` if it is not. One array for all, since an eviction is the
            hottest hook there is.
        extra: by block, its references beyond the first.
    """

    def __init__(
        self, pool: Any, guard: Guard, clock: Callable[[], float], alone: bool = True
    ) -> None:
        self.pool = pool
        self.extra_references = self.shared = self.resurrections = 0
        self.freed = 0
        self._clock = clock
        self._queue = pool.free_block_queue
        self._free_before = 0
        self._evictable = self._evicted_in_use = self._evicted_and_taken = 0
        blocks = len(pool.blocks)
        self.since_s = array("d", bytes(8 * blocks))
        self.extra = array("Q", bytes(8 * blocks))
        self._evicted_since_s: list[float] = []
        self._sorts_out = not alone and hasattr(pool.blocks[0], "pool")
        self.attached = all(
            [  # a list: each is tried, whichever is missing
                self._follow_freed("free_blocks", guard),
                hook(pool, "touch", guard, after=self._after_touch, spend=True),
                hook(pool, "reset_prefix_cache", guard, after=self._after_reset),
                hook(pool, "_maybe_evict_cached_block", guard, before=self._before_evict),
            ]
        )
        # Of later releases: absent means there is nothing to count.
        self._follow_freed("unpin_blocks", guard)
        hook(pool, "move_block_hashes", guard, after=self._after_move)
        self.settle_all(b for b in pool.blocks if b.ref_cnt or b.block_hash is not None)

    def _follow_freed(self, method: str, guard: Guard) -> bool:
        return hook(
            self.pool,
            method,
            guard,
            before=self._before_free,
            after=self._after_free,
            spend=True,
        )

    @property
    def blocks(self) -> int:
        """Usable blocks: the null block is not."""
        return int(self.pool.num_gpu_blocks) - 1

    @property
    def free(self) -> int:
        """Unreferenced blocks."""
        return int(self._queue.num_free_blocks)

    @property
    def referenced(self) -> int:
        """Blocks somebody holds."""
        return self.blocks - self.free

    @property
    def evictable(self) -> int:
        """Unreferenced blocks that have a prefix hash."""
        return self._evictable - len(self._evicted_since_s)

    @property
    def evictions(self) -> int:
        """Cached blocks overwritten or evicted, also those that were in use."""
        return self._evicted_in_use + self._evicted_and_taken + len(self._evicted_since_s)

    def now(self) -> tuple[int, int]:
        """Return free and evictable blocks, for each step."""
        return self._queue.num_free_blocks, self._evictable - len(self._evicted_since_s)

    def take_evicted(self) -> list[float]:
        """Return, once, each block evicted while free: the time since which it had been free.

        Negative for one that had had a hit since it was filled.
        """
        taken, self._evicted_since_s = self._evicted_since_s, []
        self._evictable -= len(taken)
        self._evicted_and_taken += len(taken)
        return taken

    def settle(self, block: Any, now_s: float) -> None:
        """Count a block as what it is.

        Args:
            block: of the pool.
            now_s: taken as the time since which it is evictable, if that comes out now.
        """
        if block.is_null:
            return  # its reference count is not maintained
        number, references = block.block_id, block.ref_cnt
        evictable = references == 0 and block.block_hash is not None
        if evictable != _is_evictable(self.since_s[number]):
            self._evictable += 1 if evictable else -1
            self.since_s[number] = now_s if evictable else NOT_HIT
        self._set_extra(number, references - 1 if references else 0)

    def settle_all(self, blocks: Iterable[Any]) -> None:
        """Count blocks as what they are."""
        now_s = self._clock()
        for block in blocks:
            self.settle(block, now_s)

    def _set_extra(self, number: int, extra: int) -> None:
        """Note a block's references beyond the first."""
        before = self.extra[number]
        self.extra[number] = extra
        self.extra_references += extra - before
        self.shared += (extra > 0) - (before > 0)

    # After and not before: a block may be in the argument twice.

    def _before_free(self, *_: Any, **__: Any) -> None:
        self._free_before = self._queue.num_free_blocks

    def _after_free(self, _: None, ordered_blocks: Sequence[Any], *__: Any, **___: Any) -> None:
        self.freed += self._queue.num_free_blocks - self._free_before
        blocks = ordered_blocks
        if self._sorts_out:
            blocks = [block for block in blocks if block.pool is self.pool]
        since_s, now_s = self.since_s, self._clock()
        extra = self.extra
        evictable = 0
        for block in blocks:
            references = block.ref_cnt
            if references == 0:
                number = block.block_id
                if extra[number]:
                    self._set_extra(number, 0)
                if block._block_hash is not None:  # noqa: SLF001  # the property costs a call
                    before = since_s[number]
                    if before == NOT_HIT:
                        since_s[number] = now_s
                        evictable += 1
                    elif before == HIT:
                        since_s[number] = -now_s
                        evictable += 1
            elif not block.is_null:
                self._set_extra(block.block_id, references - 1)
        self._evictable += evictable

    def _after_touch(self, _: None, blocks: Sequence[Any], *__: Any) -> None:
        if blocks and isinstance(blocks[0], (list, tuple)):
            blocks = list(chain.from_iterable(blocks))  # by group: 0.13 to 0.15
        since_s = self.since_s
        for block in blocks:
            if block.is_null:
                continue
            number = block.block_id
            before = since_s[number]
            if before > NOT_HIT or before < HIT:
                self.resurrections += 1
                self._evictable -= 1
            since_s[number] = HIT
            if block.ref_cnt > 1:
                self._set_extra(number, block.ref_cnt - 1)

    def _before_evict(self, block: Any) -> None:
        # Called for each block of an allocation, and a batch of 256 allocates 16 a step.
        if block._block_hash is not None:  # noqa: SLF001  # the property costs a call
            since_s, number = self.since_s, block.block_id
            before = since_s[number]
            if before > NOT_HIT or before < HIT:
                self._evicted_since_s.append(before)
            else:
                self._evicted_in_use += 1
            since_s[number] = NOT_HIT

    def _after_reset(self, done: bool, *_: Any, **__: Any) -> None:
        if done:
            self.since_s = array("d", bytes(8 * len(self.since_s)))
            self._evictable = len(self._evicted_since_s)

    def _after_move(self, _: Any, src_block: Any, dst_block: Any) -> None:
        self.settle_all((src_block, dst_block))


def _is_evictable(since_s: float) -> bool:
    return since_s > NOT_HIT or since_s < HIT
