"""Random operations on vLLM's own BlockPool and KVCacheManager, and a full recount after each.

``BLOCKS_EXAMPLES`` sets how many sequences of operations each test runs.
"""

import importlib.util
import logging
import math
import os
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from vramscope.exporters.engine.probe.hooks import Guard
from vramscope.exporters.engine.probe.pools import Pools
from vramscope.exporters.engine.probe.reservations import Reservations

pytestmark = pytest.mark.vllm

BLOCKS = 24
SETTINGS = settings(
    max_examples=int(os.environ.get("BLOCKS_EXAMPLES", "100")),
    stateful_step_count=30,
    deadline=None,
    derandomize="BLOCKS_EXAMPLES" not in os.environ,  # the same in each run of CI
    suppress_health_check=list(HealthCheck),
)


def load(name: str) -> ModuleType:
    """Import what the programs beside this file share."""
    spec = importlib.util.spec_from_file_location(
        name, Path(__file__).parent / "programs" / f"{name}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


naive = load("naive_blocks")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what vLLM imports
    torch = pytest.importorskip("torch")
    pytest.importorskip("vllm")
    from vllm.sampling_params import SamplingParams
    from vllm.utils.hashing import get_hash_fn_by_name
    from vllm.v1.core.block_pool import BlockPool
    from vllm.v1.core.kv_cache_manager import KVCacheManager
    from vllm.v1.core.kv_cache_utils import (
        BlockHash,
        get_request_block_hasher,
        init_none_hash,
        make_block_hash_with_group_id,
    )
    from vllm.v1.kv_cache_interface import (
        FullAttentionSpec,
        KVCacheConfig,
        KVCacheGroupSpec,
        MambaSpec,
        SlidingWindowSpec,
    )
    from vllm.v1.request import Request, RequestStatus

logging.getLogger("vllm").setLevel(logging.ERROR)  # a reset that has to wait, each time
HASH = get_hash_fn_by_name("sha256")
init_none_hash(HASH)


def full(block_size: int) -> Any:
    shape = {"num_kv_heads": 1, "head_size": 8, "dtype": torch.float16}
    return FullAttentionSpec(block_size=block_size, **shape)


def sliding(block_size: int) -> Any:
    shape = {"num_kv_heads": 1, "head_size": 8, "dtype": torch.float16}
    return SlidingWindowSpec(block_size=block_size, sliding_window=9, **shape)


def mamba(block_size: int, mode: str) -> Any:
    return MambaSpec(
        block_size=block_size, shapes=((8,),), dtypes=(torch.float16,), mamba_cache_mode=mode
    )


MODELS: dict[str, tuple[list[Any], int]] = {
    "full attention": ([full(4)], 4),
    "sliding window": ([full(4), sliding(4), sliding(4)], 4),
    "differing block sizes": ([full(4), sliding(8)], 8),
    "mamba, one state": ([full(4), mamba(64, "none")], 64),
    "mamba, each block's state": ([full(4), mamba(4, "all")], 4),
    "mamba, aligned states and partial hits": ([full(4), mamba(8, "align")], 8),
}


class Machine(RuleBasedStateMachine):
    """A pool under a probe, and the same counted the slow way."""

    def set_up(self, managers: Any, kv_cache_manager: Any) -> None:
        self.now_s = 1000.0
        self.running: list[Any] = []
        self.requests: dict[str, Any] = {}
        self.deferred: list[tuple[int, Any]] = []
        self.pinned: list[Any] = []
        self.managers = managers
        self.scheduler = SimpleNamespace(
            kv_cache_manager=kv_cache_manager,
            running=self.running,
            requests=self.requests,
            deferred_frees=self.deferred,
            num_lookahead_tokens=0,
        )
        self.errors: list[str] = []
        guard = Guard(self.errors.append)
        pools = {id(manager.block_pool): manager.block_pool for manager in managers}.values()
        self.watched = [naive.Watched(pool, lambda: self.now_s) for pool in pools]
        self.reservations = Reservations(self.scheduler, guard)
        self.probe = Pools(self.scheduler, self.reservations, guard, lambda: self.now_s)

    @rule(seconds=st.sampled_from((0.5, 4.0, 20.0, 500.0)))
    def time_passes(self, seconds: float) -> None:
        self.now_s += seconds

    @precondition(lambda self: hasattr(self, "probe"))
    @invariant()
    def every_number_is_that_of_a_recount(self) -> None:
        assert self.errors == []
        self.reservations.scan(self.now_s)
        values = self.probe.scan(self.now_s)
        said = dict(zip(self.probe.scan_fields, values, strict=True))
        now = [number for tracker in self.probe.trackers for number in tracker.now()]
        said |= dict(zip(self.probe.step_fields, now, strict=True))
        running = {one.request_id: one.num_computed_tokens for one in self.running}
        wrong = []
        group = 0
        for index, watched in enumerate(self.watched):
            tables = naive.recount_tables(self.managers, watched.pool, running)
            truth = {**watched.truth(self.now_s), **tables}
            truth["free_now"] = truth["evictable"] + truth["clean"]
            truth["evictable_now"] = truth["evictable"]
            for name, want in truth.items():
                if name.startswith("group"):
                    name, group = f"group{group}_entries", group + 1
                    got = said[name]
                else:
                    got = said[f"pool{index}_{name}"]
                if not math.isclose(got, want, abs_tol=1e-6):
                    wrong.append(f"pool {index}: {name} is {got}, want {want}")
        assert wrong == []


class PoolMachine(Machine):
    """Single operations on two pools, also such as vLLM's own managers don't do today."""

    @initialize()
    def start(self) -> None:
        pools = [BlockPool(BLOCKS, True, 4), BlockPool(BLOCKS // 2, True, 4)]
        tables: list[dict[str, Any]] = [{}, {}]
        managers = [
            SimpleNamespace(
                block_pool=pool,
                block_size=size,
                req_to_blocks=table,
                kv_cache_spec=full(size),
                get_num_skipped_tokens=lambda tokens: 0,
            )
            for pool, table, size in zip(pools, tables, (4, 8), strict=True)
        ]
        coordinator = SimpleNamespace(single_type_managers=managers)
        manager = SimpleNamespace(
            coordinator=coordinator,
            block_pool=pools[0],
            take_kv_cache_block_copies=lambda: ([], self.copied),
        )
        self.copied: list[Any] = []
        self.held: list[Any] = []
        self.set_up(managers, manager)
        self.pools = pools

    @rule(which=st.integers(0, 1), blocks=st.integers(0, 5))
    def allocate(self, which: int, blocks: int) -> None:
        pool = self.pools[which]
        self.held += pool.get_new_blocks(min(blocks, pool.get_num_free_blocks()))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), key=st.integers(0, 12))
    def cache(self, data: Any, key: int) -> None:
        block = data.draw(st.sampled_from(self.held))
        if block.block_hash is None:
            block_hash = make_block_hash_with_group_id(BlockHash(bytes([key]) * 32), 0)
            block.pool._insert_block_hash(block_hash, block, num_tokens=4)

    @rule(which=st.integers(0, 1), keys=st.lists(st.integers(0, 12), max_size=4))
    def hit(self, which: int, keys: list[int]) -> None:
        pool = self.pools[which]
        found = [pool.get_cached_block(BlockHash(bytes([key]) * 32), [0]) for key in keys]
        blocks = [one[0] for one in found if one is not None]
        pool.touch(blocks)
        self.held += blocks

    @rule(data=st.data(), iterator=st.booleans())
    def free(self, data: Any, iterator: bool) -> None:
        # Blocks of both pools, and one twice if it is held twice.
        count = data.draw(st.integers(0, len(self.held)))
        freed, self.held = self.held[:count], self.held[count:]
        self.pools[0].free_blocks(reversed(freed) if iterator else freed)

    @rule(which=st.integers(0, 1), ids=st.sets(st.integers(1, BLOCKS // 2 - 1), max_size=4))
    def evict(self, which: int, ids: set[int]) -> None:
        self.pools[which].evict_blocks(ids)

    @rule(which=st.integers(0, 1))
    def reset(self, which: int) -> None:
        self.pools[which].reset_prefix_cache()

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def unpin(self, data: Any) -> None:
        block = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        block.pool.unpin_blocks([block], lambda _: None)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def move(self, data: Any) -> None:
        source = data.draw(st.sampled_from(self.held))
        if source.block_hash is not None and source.pool.get_num_free_blocks():
            (target,) = source.pool.get_new_blocks(1)
            source.pool.move_block_hashes(source, target)
            self.held.append(target)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def copy_on_write(self, data: Any) -> None:
        block = data.draw(st.sampled_from(self.held))
        block.ref_cnt += 1  # as vLLM does, past every method of the pool
        self.held.append(block)
        self.copied = [block]
        self.scheduler.kv_cache_manager.take_kv_cache_block_copies()


class ManagerMachine(Machine):
    """Requests of a scheduler that does all at random, on a real KVCacheManager."""

    specs: list[Any]
    block_size: int
    sent = 0

    @initialize()
    def start(self) -> None:
        groups = [KVCacheGroupSpec([f"layer{i}"], spec) for i, spec in enumerate(self.specs)]
        config = KVCacheConfig(num_blocks=BLOCKS, kv_cache_tensors=[], kv_cache_groups=groups)
        self.manager = KVCacheManager(
            config,
            max_model_len=64,
            scheduler_block_size=self.block_size,
            hash_block_size=4,
            enable_caching=True,
        )
        self.set_up(self.manager.coordinator.single_type_managers, self.manager)
        self.hasher = get_request_block_hasher(4, HASH)

    @rule(prefix=st.integers(0, 1), shared=st.integers(0, 24), own=st.integers(1, 14))
    def admit(self, prefix: int, shared: int, own: int) -> None:
        self.sent += 1
        tokens = [100 * (prefix + 1)] * shared + [1000 + self.sent] * own
        request = Request(
            request_id=f"r{self.sent}",
            prompt_token_ids=tokens,
            sampling_params=SamplingParams(max_tokens=20),
            pooling_params=None,
            block_hasher=self.hasher,
        )
        self._admit(request)

    @precondition(lambda self: self.waiting())
    @rule(data=st.data())
    def resume(self, data: Any) -> None:
        self._admit(data.draw(st.sampled_from(self.waiting())))

    def waiting(self) -> list[Any]:
        known = getattr(self, "requests", {}).values()
        return [one for one in known if one.status == RequestStatus.PREEMPTED]

    def _admit(self, request: Any) -> None:
        self.manager.new_step_starts()
        computed, hit, boundary = self.manager.get_computed_blocks(request)
        request.shared_prefix_boundary = boundary
        chunk = self._chunk(request, hit)
        if chunk == 0:
            return
        self.requests[request.request_id] = request
        blocks = self.manager.allocate_slots(
            request, chunk, hit, computed, full_sequence_must_fit=True
        )
        self._copies()
        if blocks is None:
            request.status = RequestStatus.PREEMPTED
            return
        request.num_computed_tokens = hit + chunk
        request.status = RequestStatus.RUNNING
        self.running.append(request)

    def _chunk(self, request: Any, start: int) -> int:
        """Return a chunk that ends on a block's boundary, as for aligned states it has to."""
        end = (start // self.block_size + max(1, 16 // self.block_size)) * self.block_size
        return int(min(end, request.num_tokens) - start)

    @precondition(lambda self: bool(getattr(self, "running", None)))
    @rule(data=st.data())
    def compute(self, data: Any) -> None:
        request = data.draw(st.sampled_from(self.running))
        self.manager.new_step_starts()
        if request.num_computed_tokens == request.num_tokens:
            if request.num_tokens >= 60:
                return
            request.append_output_token_ids(7)
        chunk = self._chunk(request, request.num_computed_tokens)
        if self.manager.allocate_slots(request, chunk) is None:
            self.running.remove(request)
            self.manager.free(request)
            request.num_computed_tokens = 0
            request.status = RequestStatus.PREEMPTED
        else:
            request.num_computed_tokens += chunk
        self._copies()

    def _copies(self) -> None:
        _, retained = self.manager.take_kv_cache_block_copies()
        if retained:
            self.deferred.append((0, retained))

    @precondition(lambda self: bool(getattr(self, "running", None)))
    @rule(data=st.data(), later=st.booleans())
    def finish(self, data: Any, later: bool) -> None:
        request = data.draw(st.sampled_from(self.running))
        self.running.remove(request)
        del self.requests[request.request_id]
        if later:
            self.deferred.append((0, self.manager.pop_blocks_for_free(request)))
        else:
            self.manager.free(request)

    @precondition(lambda self: bool(getattr(self, "running", None)))
    @rule(data=st.data())
    def hold(self, data: Any) -> None:
        """Stop running and keep the blocks, as a request does whose blocks are being sent."""
        request = data.draw(st.sampled_from(self.running))
        self.running.remove(request)
        request.status = RequestStatus.WAITING_FOR_REMOTE_KVS

    @precondition(lambda self: self.holding())
    @rule(data=st.data())
    def let_go(self, data: Any) -> None:
        request = data.draw(st.sampled_from(self.holding()))
        del self.requests[request.request_id]
        self.manager.free(request)

    def holding(self) -> list[Any]:
        known = getattr(self, "requests", {}).values()
        return [one for one in known if one.status == RequestStatus.WAITING_FOR_REMOTE_KVS]

    @precondition(lambda self: bool(getattr(self, "deferred", None)))
    @rule()
    def drain(self) -> None:
        for _, blocks in self.deferred:
            self.manager.block_pool.free_blocks(reversed(blocks))
        self.deferred.clear()

    @rule(ids=st.sets(st.integers(1, BLOCKS - 1), max_size=3))
    def evict(self, ids: set[int]) -> None:
        self.manager.evict_blocks(ids)

    @rule()
    def reset(self) -> None:
        self.manager.reset_prefix_cache()

    @rule(ids=st.sets(st.integers(1, BLOCKS - 1), max_size=3), unpin=st.booleans())
    def pin(self, ids: set[int], unpin: bool) -> None:
        pool = self.manager.block_pool
        if self.pinned:
            pinned, self.pinned = self.pinned, []
            if unpin:
                pool.unpin_blocks(pinned, lambda _: None)
            else:
                pool.free_blocks(pinned)
            return
        self.pinned = [pool.blocks[number] for number in ids]
        pool.touch(self.pinned)


def test_pools_under_random_operations_are_counted_exactly() -> None:
    run_state_machine_as_test(PoolMachine, settings=SETTINGS)


@pytest.mark.parametrize("model", MODELS)
def test_cache_manager_under_random_requests_is_counted_exactly(
    model: str,
) -> None:
    specs, block_size = MODELS[model]
    body = {"specs": specs, "block_size": block_size}
    machine: type[RuleBasedStateMachine] = type("ThisManager", (ManagerMachine,), body)
    run_state_machine_as_test(machine, settings=SETTINGS)
