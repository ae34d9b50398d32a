"""The growth part on a stand-in for a pool, by hand."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from vramscope.exporters.engine.probe.blocks import PoolTracker
from vramscope.exporters.engine.probe.growth import WINDOW_S, Growth
from vramscope.exporters.engine.probe.hooks import Guard

BLOCK = SimpleNamespace(block_id=0, ref_cnt=0, block_hash=None, _block_hash=None, is_null=False)


class Pool:
    """As much of a block pool as the part looks at."""

    def __init__(self, free: int) -> None:
        self.free_block_queue = SimpleNamespace(num_free_blocks=free)
        self.blocks = [BLOCK]

    def take(self, blocks: int) -> None:
        self.free_block_queue.num_free_blocks -= blocks

    def free_blocks(self, ordered_blocks: Any) -> None:
        self.free_block_queue.num_free_blocks += len(list(ordered_blocks))


class Stand:
    """One scheduler with one pool and one group."""

    def __init__(self) -> None:
        self.pool = Pool(100)
        self.tables: dict[str, list[Any]] = {}
        self.errors: list[str] = []
        self.scheduler = SimpleNamespace(running=["somebody"])
        self.pools = SimpleNamespace(
            pools=[self.pool],
            trackers=[PoolTracker(self.pool, Guard(self.errors.append), lambda: 0.0)],
            by_pool=[[SimpleNamespace(req_to_blocks=self.tables)]],
            usable=[100],
        )
        self.growth = Growth(self.scheduler, self.pools)  # type: ignore[arg-type]

    def take(self, name: str, blocks: int) -> None:
        self.tables.setdefault(name, []).extend([BLOCK] * blocks)
        self.pool.take(blocks)

    def scan(self, now_s: float) -> dict[str, float]:
        self.pools.usable[0] = self.pool.free_block_queue.num_free_blocks
        values = self.growth.scan(now_s)
        names = (name.removeprefix("pool0_growth_") for name in self.growth.scan_fields)
        return dict(zip(names, values, strict=True))


@pytest.fixture
def stand() -> Stand:
    made = Stand()
    made.scan(0.0)
    return made


def test_blocks_are_decodes_from_the_end_of_the_prefill_on(stand: Stand) -> None:
    stand.take("a", 4)
    stand.growth.decodes("a")
    stand.take("a", 3)
    fields = stand.scan(1.0)
    assert (fields["prefill"], fields["decode"], fields["freed"]) == (4, 3, 0)


def test_what_a_request_took_stays_counted_when_it_leaves(stand: Stand) -> None:
    stand.take("a", 4)
    stand.growth.decodes("a")
    stand.take("a", 3)
    stand.growth.leaves("a")
    stand.pool.free_blocks(iter(stand.tables.pop("a")))
    fields = stand.scan(1.0)
    assert (fields["prefill"], fields["decode"], fields["freed"]) == (4, 3, 7)
    assert stand.errors == []


def test_averages_forget_by_the_window(stand: Stand) -> None:
    stand.take("a", 10)
    fields = stand.scan(1.0)  # 10 blocks in a second
    kept = math.exp(-1.0 / WINDOW_S)
    assert fields["per_s"] == pytest.approx((1 - kept) * 10)
    assert fields["prefill_per_s"] == pytest.approx((1 - kept) * 10)
    assert fields["weight"] == pytest.approx(1 - kept)
    assert fields["variance"] == pytest.approx((1 - kept) * 100)
    fields = stand.scan(2.0)  # and none in the next
    assert fields["per_s"] == pytest.approx(kept * (1 - kept) * 10)


def test_idle_engine_forgets_the_load_it_had_but_no_counter(stand: Stand) -> None:
    stand.take("a", 10)
    stand.scan(1.0)
    stand.scheduler.running = []
    fields = stand.scan(2.0)
    assert (fields["per_s"], fields["weight"], fields["prefill_per_s"]) == (0, 0, 0)
    assert fields["prefill"] == 10
