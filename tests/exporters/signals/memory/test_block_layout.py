"""Pools are cut, and requests take blocks, as vLLM's own code does it, for layers of any order."""

import logging
import warnings
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from vramscope.exporters.signals.memory.block_layout import BlockLayout, block_layout
from vramscope.exporters.signals.memory.cache import AttentionCache, CacheLayer, State, StateCache
from vramscope.exporters.signals.memory.tensor import LayoutError
from vramscope.exporters.signals.memory.weights import stage_layers

pytestmark = pytest.mark.vllm

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what vLLM imports
    torch = pytest.importorskip("torch")
    pytest.importorskip("vllm")
    from vllm.config import VllmConfig
    from vllm.v1.attention.backends.utils import resolve_kv_cache_layout
    from vllm.v1.core.block_pool import BlockPool
    from vllm.v1.core.kv_cache_utils import get_kv_cache_configs
    from vllm.v1.core.single_type_kv_cache_manager import get_manager_for_kv_cache_spec
    from vllm.v1.kv_cache_interface import (
        ChunkedLocalAttentionSpec,
        FullAttentionSpec,
        MambaSpec,
        SlidingWindowSpec,
    )

logging.getLogger("vllm").setLevel(logging.ERROR)  # padding layers, each time
BLOCK_SIZE = 16
LONGEST = 8192
POOL_BYTES = 1 << 28
HEADS = {"num_kv_heads": 2, "head_size": 8, "dtype": torch.float16}
ALL = AttentionCache(2, 8, 8)
WINDOW = AttentionCache(2, 8, 8, window=40)
CHUNK = AttentionCache(2, 8, 8, chunk=48)
STATE = StateCache((State((40, 40)),), "mamba1")
LAYERS = (
    st.lists(st.sampled_from((ALL, WINDOW)), min_size=1, max_size=24)
    | st.lists(st.sampled_from((ALL, CHUNK)), min_size=1, max_size=24)
    | st.lists(st.sampled_from((ALL, STATE, None)), min_size=1, max_size=24)
)


def spec(layer: CacheLayer, block_size: int, *, hybrid: bool) -> Any:
    """Return what a layer of vLLM says that it keeps."""
    if not isinstance(layer, AttentionCache):
        [state] = layer.states
        return MambaSpec(
            block_size=block_size if hybrid else LONGEST,
            shapes=(state.shape,),
            dtypes=(torch.float16,),
            page_size_padded=block_size * ALL.token_bytes(1, 2) if hybrid else None,
            mamba_cache_mode="align" if hybrid else "none",
        )
    if layer.window is not None:
        return SlidingWindowSpec(block_size=block_size, sliding_window=layer.window, **HEADS)
    if layer.chunk is not None:
        return ChunkedLocalAttentionSpec(
            block_size=block_size, attention_chunk_size=layer.chunk, **HEADS
        )
    return FullAttentionSpec(block_size=block_size, **HEADS)


def specs(layers: list[CacheLayer | None], layout: BlockLayout, stage: range) -> dict[str, Any]:
    """Return what vLLM's layers of a stage say that they keep."""
    hybrid = ALL in layers and STATE in layers
    return {
        f"layers.{n}": spec(kept, layout.block_size, hybrid=hybrid)
        for n in stage
        if (kept := layers[n])
    }


def vllm_config(step_tokens: int, *, hybrid: bool) -> Any:
    """Return what vLLM's functions here read of an engine."""
    config = VllmConfig()
    config.model_config = SimpleNamespace(max_model_len=LONGEST, original_max_model_len=LONGEST)
    config.scheduler_config.disable_hybrid_kv_cache_manager = False
    config.scheduler_config.max_num_batched_tokens = step_tokens
    config.scheduler_config.async_scheduling = False
    config.cache_config.mamba_cache_mode = "align" if hybrid else "none"
    return config


def vllm_pools(config: Any, stages: list[dict[str, Any]]) -> list[Any]:
    """Return vLLM's pool of each pipeline stage."""
    everything = [spec for stage in stages for spec in stage.values()]
    resolve_kv_cache_layout(config, [["LBNHC", "LBHNC", "BLNHC", "BLHNC"]], everything)
    pools: list[Any] = get_kv_cache_configs(config, stages, [POOL_BYTES] * len(stages))
    return pools


@settings(deadline=None)
@given(LAYERS, st.integers(1, 4), st.integers(1, 2000))
def test_pools_are_cut_and_requests_counted_as_vllm_does(
    layers: list[CacheLayer | None], count: int, step_tokens: int
) -> None:
    assume(count <= len(layers))
    stages = stage_layers(len(layers), count)
    whole = block_layout(layers, BLOCK_SIZE, 1, 2, 2)
    assume(whole is not None)
    assert whole is not None
    config = vllm_config(step_tokens, hybrid=whole.states == 2)
    kept = [specs(layers, whole, stage) for stage in stages]
    if not all(kept):
        with pytest.raises(LayoutError, match="keep nothing of a request"):
            [block_layout(layers, BLOCK_SIZE, 1, 2, 2, stage) for stage in stages]
        with pytest.raises((ValueError, ZeroDivisionError)):
            vllm_pools(config, kept)
        return
    pools = vllm_pools(config, kept)
    cut = [block_layout(layers, BLOCK_SIZE, 1, 2, 2, stage) for stage in stages]
    blocks = [POOL_BYTES // one.block_bytes for one in cut if one is not None]
    assert {pool.num_blocks for pool in pools} == {min(blocks)}
    assert all(one is not None and one.tables == whole.tables for one in cut)
    found = [group.kv_cache_spec for group in pools[0].kv_cache_groups]
    assert sum(groups for _, groups in whole.tables) == len(found)
    most = sum(-(-one.max_memory_usage_bytes(config) // one.page_size_bytes) for one in found)
    assert whole.request_blocks(LONGEST, step_tokens) == most


@pytest.mark.parametrize("layer", [ALL, WINDOW, CHUNK, STATE])
@pytest.mark.parametrize("hybrid", [True, False])
@pytest.mark.parametrize("step_tokens", [1, 16, 100])
def test_a_request_never_holds_more_blocks_than_counted(
    layer: CacheLayer, hybrid: bool, step_tokens: int
) -> None:
    layout = BlockLayout(BLOCK_SIZE, 1, ((layer, 1),), states=2 if hybrid else 1)
    held = blocks_held(spec(layer, BLOCK_SIZE, hybrid=hybrid), 400, step_tokens)
    counted = {tokens: layout.request_blocks(tokens, step_tokens) for tokens in held}
    assert all(held[tokens] <= counted[tokens] for tokens in held)
    if layer == ALL:
        assert held == counted
    if step_tokens == 1 and layer != CHUNK:  # for which vLLM counts one that it never holds
        assert max(held.values()) == max(counted.values())


def blocks_held(wanted: Any, tokens: int, step_tokens: int) -> dict[int, int]:
    """Return the blocks that vLLM's manager holds, by the request's length after each step."""
    pool = BlockPool(100, enable_caching=False, hash_block_size=BLOCK_SIZE)
    manager = get_manager_for_kv_cache_spec(
        wanted,
        max_in_flight_tokens=step_tokens,
        max_model_len=LONGEST,
        block_pool=pool,
        enable_caching=False,
        kv_cache_group_id=0,
        scheduler_block_size=BLOCK_SIZE,
    )
    free = pool.get_num_free_blocks()
    found: dict[int, int] = {}
    for computed in range(0, tokens, step_tokens):
        manager.new_step_starts()
        manager.remove_skipped_blocks("request", computed)
        wanted_tokens = computed + step_tokens
        manager.get_num_blocks_to_allocate("request", wanted_tokens, [], computed, 0, wanted_tokens)
        manager.allocate_new_blocks("request", wanted_tokens, wanted_tokens)
        found[wanted_tokens] = free - pool.get_num_free_blocks()
    return found
