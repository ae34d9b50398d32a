"""The pool tracker and its census on stand-ins shaped like the pools of vLLM's releases."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from vramscope.exporters.engine.probe import census as census_module
from vramscope.exporters.engine.probe.blocks import PoolTracker
from vramscope.exporters.engine.probe.census import CENSUS_FIELDS, Census
from vramscope.exporters.engine.probe.evictions import EvictedAges
from vramscope.exporters.engine.probe.hooks import Guard


@dataclass(eq=False)
class Block:
    """As of 0.13: it does not name its pool."""

    block_id: int
    ref_cnt: int = 0
    _block_hash: str | None = None
    is_null: bool = False

    @property
    def block_hash(self) -> str | None:
        return self._block_hash


@dataclass
class Pool:
    """As of 0.16 to 0.29, without what the tracker does not look at."""

    num_gpu_blocks: int = 9
    blocks: list[Block] = field(init=False)

    def __post_init__(self) -> None:
        self.blocks = [Block(number) for number in range(self.num_gpu_blocks)]
        self.blocks[0].is_null = True
        self.cached_block_hash_to_block = SimpleNamespace(_cache={})

    @property
    def free_block_queue(self) -> Any:
        free = sum(block.ref_cnt == 0 for block in self.blocks[1:])
        return SimpleNamespace(num_free_blocks=free)

    def take(self, *numbers: int, block_hash: str | None = None) -> list[Block]:
        """Allocate these blocks, and cache what will be in them."""
        for number in numbers:
            block = self.blocks[number]
            self._maybe_evict_cached_block(block)
            block.ref_cnt = 1
            if block_hash is not None:
                block._block_hash = f"{block_hash}{number}"
                self.cached_block_hash_to_block._cache[block._block_hash] = block
        return [self.blocks[number] for number in numbers]

    def _maybe_evict_cached_block(self, block: Block) -> bool:
        had, block._block_hash = block._block_hash, None
        return had is not None

    def touch(self, blocks: Sequence[Any]) -> None:
        for block in blocks:
            block.ref_cnt += 1

    def free_blocks(self, ordered_blocks: Iterable[Block]) -> None:
        for block in ordered_blocks:
            block.ref_cnt -= 1

    def reset_prefix_cache(self) -> bool:
        for block in self.blocks:
            block._block_hash = None
        return True


class GroupedTouchPool(Pool):
    """As of 0.13 to 0.15: touched blocks come in one sequence for each group."""

    def touch(self, blocks: Sequence[Sequence[Block]]) -> None:
        for group in blocks:
            super().touch(group)


class NullSkippingPool(Pool):
    """As of 0.33: the null block keeps its reference count."""

    def touch(self, blocks: Sequence[Block]) -> None:
        super().touch([block for block in blocks if not block.is_null])

    def free_blocks(self, ordered_blocks: Iterable[Block]) -> None:
        super().free_blocks(block for block in ordered_blocks if not block.is_null)


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def follow(pool: Any, clock: Clock, alone: bool = True) -> PoolTracker:
    def fail(error: str) -> None:
        raise AssertionError(error)

    return PoolTracker(pool, Guard(fail), clock, alone)


@pytest.mark.parametrize("kind", [Pool, NullSkippingPool])
def test_null_block_in_a_table_counts_nowhere(kind: type[Pool], clock: Clock) -> None:
    pool = kind()
    tracker = follow(pool, clock)
    null = pool.blocks[0]
    table = [null, *pool.take(1, 2, block_hash="p"), null]
    pool.touch(table)
    assert (tracker.shared, tracker.extra_references) == (2, 2)
    pool.free_blocks(iter(table))
    pool.free_blocks(table)
    assert (tracker.evictable, tracker.free) == (2, 8)
    assert (tracker.shared, tracker.extra_references) == (0, 0)


def test_blocks_touched_group_by_group_are_each_counted(clock: Clock) -> None:
    pool = GroupedTouchPool()
    tracker = follow(pool, clock)
    pool.free_blocks(pool.take(1, 2, 3, block_hash="p"))
    pool.touch(([pool.blocks[1]], (pool.blocks[2],), []))
    assert (tracker.resurrections, tracker.evictable) == (2, 1)


def test_block_freed_twice_in_one_call_is_counted_once(clock: Clock) -> None:
    pool = Pool()
    tracker = follow(pool, clock)
    (block,) = pool.take(1, block_hash="p")
    pool.touch([block])
    pool.free_blocks([block, block])
    assert (tracker.evictable, tracker.shared, tracker.extra_references) == (1, 0, 0)


def test_blocks_of_another_pool_are_left_to_it(clock: Clock) -> None:
    @dataclass(eq=False)
    class Named(Block):
        pool: Any = None

    pool, other = Pool(), Pool()
    for one in (pool, other):
        one.blocks = [Named(block.block_id, pool=one) for block in one.blocks]
        one.blocks[0].is_null = True
    tracker, other_tracker = follow(pool, clock, False), follow(other, clock, False)
    pool.free_blocks([*pool.take(1, block_hash="p"), *other.take(2, block_hash="q")])
    assert tracker.evictable == 1
    assert other_tracker.evictable == 0  # until its own pool is told


def test_pool_that_lacks_a_method_is_not_said_to_be_followed(clock: Clock) -> None:
    class Renamed(Pool):
        _maybe_evict_cached_block = None  # type: ignore[assignment]

    assert not follow(Renamed(), clock).attached


def test_blocks_in_use_before_the_probe_came_are_known(clock: Clock) -> None:
    pool = Pool()
    pool.touch(pool.take(1, 2, block_hash="p"))
    pool.free_blocks(pool.take(3, block_hash="q"))
    tracker = follow(pool, clock)
    assert (tracker.evictable, tracker.shared, tracker.extra_references) == (1, 2, 2)


def test_eviction_tells_since_when_the_block_was_free_and_whether_it_was_hit(
    clock: Clock,
) -> None:
    pool = Pool()
    tracker = follow(pool, clock)
    pool.free_blocks(pool.take(1, 2, block_hash="p"))
    clock.now_s = 1010.0
    pool.touch([pool.blocks[1]])
    pool.free_blocks([pool.blocks[1]])
    pool.take(1, 2, 3)
    assert tracker.take_evicted() == [-1010.0, 1000.0]
    assert tracker.take_evicted() == []
    assert (tracker.evictions, tracker.evictable) == (2, 0)


def test_block_evicted_while_in_use_has_no_age(clock: Clock) -> None:
    pool = Pool()
    tracker = follow(pool, clock)
    pool._maybe_evict_cached_block(*pool.take(1, block_hash="p"))
    assert (tracker.evictions, tracker.take_evicted()) == (1, [])


def test_filled_again_a_block_has_not_been_hit(clock: Clock) -> None:
    pool = Pool()
    tracker = follow(pool, clock)
    pool.touch(pool.take(1, block_hash="p"))
    pool.free_blocks([pool.blocks[1], pool.blocks[1]])
    pool.free_blocks(pool.take(1, block_hash="q"))
    pool.take(1)
    assert tracker.take_evicted() == [-1000.0, 1000.0]


def test_error_in_the_hook_of_an_eviction_switches_off_and_evicts_all_the_same() -> None:
    pool = Pool()
    errors: list[str] = []
    guard = Guard(errors.append)
    PoolTracker(pool, guard, Clock())
    broken = Block(99, _block_hash="p")  # a number the pool does not have
    assert pool._maybe_evict_cached_block(broken) is True
    assert errors == ["_maybe_evict_cached_block: IndexError: array index out of range"]
    assert not guard.enabled
    assert pool._maybe_evict_cached_block(Block(99, _block_hash="q")) is True
    assert len(errors) == 1


def test_ages_are_by_whether_the_block_was_hit() -> None:
    ages = EvictedAges()
    ages.add([990.0, 990.0, -400.0], now_s=1000.0)
    said = dict(zip(ages.fields, ages.values(), strict=True))
    assert said["evicted_never_hit_age_s_le_30"] == 2
    assert said["evicted_never_hit_age_s_sum"] == 20.0
    assert said["evicted_hit_age_s_le_600"] == 1
    assert said["evicted_hit_age_s_count"] == 1


def census(tracker: PoolTracker) -> Any:
    one = Census(tracker)
    return lambda now_s: dict(zip(CENSUS_FIELDS, one.scan(now_s), strict=True))


def test_census_counts_free_runs_ages_and_copies(clock: Clock) -> None:
    # 8 blocks: 1 in use, 2 to 4 free, 5 in use, 6 to 8 free, 7 and 8 of the same prefix as 6.
    pool = Pool()
    tracker = follow(pool, clock)
    pool.take(1, 5)
    pool.free_blocks(pool.take(6, block_hash="p"))
    clock.now_s = 1100.0
    pool.free_blocks(pool.take(7, 8, block_hash="p"))
    copies = {number: pool.blocks[number] for number in (6, 7, 8)}
    for block in copies.values():
        block._block_hash = "p"
    pool.cached_block_hash_to_block._cache = {"p": copies}
    said = census(tracker)(1104.0)
    assert said["duplicates"] == 2
    assert (said["free_seen"], said["free_run"]) == (6, 3)
    assert said["oldest_evictable_s"] == 104.0
    assert (said["evictable_age_le_5"], said["evictable_age_le_120"]) == (2, 1)
    assert said["drift"] == 0


def test_census_of_a_large_pool_takes_several_scans_and_is_as_old_as_its_first(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(census_module, "STRIPE", 4)
    pool = Pool(num_gpu_blocks=10)
    count = census(follow(pool, clock))
    pool.take(4)  # free blocks on both sides of a stripe's end are one run
    first, second, third = count(1000.0), count(1001.0), count(1002.0)
    assert first["census_begun_s"] != first["census_begun_s"]  # not a number: nothing known yet
    assert second["free_seen"] != second["free_seen"]
    assert third["census_begun_s"] == 1000.0
    assert (third["free_seen"], third["free_run"]) == (8, 5)
    pool.take(9)
    assert count(1003.0) == third
    count(1004.0)
    again = count(1005.0)
    assert (again["census_begun_s"], again["free_seen"], again["free_run"]) == (1003.0, 7, 4)


def test_census_sets_right_what_came_past_the_hooks_and_says_how_many_blocks(
    clock: Clock,
) -> None:
    pool = Pool()
    tracker = follow(pool, clock)
    count = census(tracker)
    one, two = pool.take(1, 2, block_hash="p")
    one.ref_cnt, two.ref_cnt = 0, 3
    assert (tracker.evictable, tracker.extra_references) == (0, 0)
    assert count(1000.0)["drift"] == 2
    assert (tracker.evictable, tracker.shared, tracker.extra_references) == (1, 1, 2)
    assert count(1001.0)["drift"] == 0


def test_release_without_a_list_of_copies_has_no_duplicates_to_tell(clock: Clock) -> None:
    pool = Pool()
    pool.free_blocks(pool.take(1, block_hash="p"))
    pool.cached_block_hash_to_block = SimpleNamespace()
    said = census(follow(pool, clock))(1000.0)
    assert said["duplicates"] != said["duplicates"]
    assert said["free_seen"] == 8
