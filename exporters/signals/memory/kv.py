"""KV bytes as a function of length: what a request of so many tokens takes on one rank."""

from collections.abc import Sequence
from dataclasses import dataclass

from vramscope.exporters.signals.memory.cache import AttentionCache, CacheLayer

__all__ = ["CacheGroup", "cache_groups", "request_blocks", "request_bytes", "token_bytes"]


@dataclass(frozen=True, slots=True)
class CacheGroup:
    """Layers that keep the same of a request.

    Attributes:
        layer: what one of them keeps.
        layers: how many.
    """

    layer: CacheLayer
    layers: int


def cache_groups(layers: Sequence[CacheLayer | None]) -> tuple[CacheGroup, ...]:
    """Return layers by what they keep, in order of their first."""
    counts: dict[CacheLayer, int] = {}
    for layer in layers:
        if layer is not None:
            counts[layer] = counts.get(layer, 0) + 1
    return tuple(CacheGroup(layer, count) for layer, count in counts.items())


def token_bytes(groups: Sequence[CacheGroup], ranks: int, element_bytes: int) -> int:
    """Return bytes that one more token takes on a rank while no window is full.

    States are not in it: they are by request, not by token.
    """
    return sum(
        group.layers * group.layer.token_bytes(ranks, element_bytes)
        for group in groups
        if isinstance(group.layer, AttentionCache)
    )


def request_blocks(layer: CacheLayer, tokens: int, block_size: int, step_tokens: int = 1) -> int:
    """Return the blocks that a request of ``tokens`` holds in one layer.

    Args:
        layer: what it keeps.
        tokens: computed, and to be computed in this step.
        block_size: token slots a block.
        step_tokens: computed in one step at most: a window holds them all until the step is over.

    Returns:
        full attention: all tokens, rounded up. A window or chunk: its tokens and a step's, and
        one block more, since it rarely begins at a block's edge (as vLLM reserves). A state: 1.

    >>> request_blocks(AttentionCache(8, 128, 128), tokens=100, block_size=16)
    7
    >>> request_blocks(AttentionCache(8, 128, 128, window=32), tokens=1000, block_size=16)
    3
    """
    if tokens <= 0:
        return 0
    if not isinstance(layer, AttentionCache):
        return 1
    if layer.window is not None:
        kept = min(layer.window - 1 + step_tokens, tokens)
        return min(-(-kept // block_size) + 1, -(-tokens // block_size))
    if layer.chunk is not None:
        return -(-min(layer.chunk + step_tokens, tokens) // block_size)
    return -(-tokens // block_size)


def request_bytes(
    groups: Sequence[CacheGroup],
    tokens: int,
    block_size: int,
    ranks: int,
    kv_element_bytes: int,
    state_element_bytes: int,
    step_tokens: int = 1,
) -> int:
    """Return bytes that a request of ``tokens`` takes on a rank, whole blocks of each layer.

    Args:
        groups: of the model's layers.
        tokens: of the request, prompt and answer.
        block_size: token slots a block.
        ranks: of tensor parallelism.
        kv_element_bytes: of a key or value.
        state_element_bytes: of a state's element.
        step_tokens: as in ``request_blocks``.
    """
    total = 0
    for group in groups:
        blocks = request_blocks(group.layer, tokens, block_size, step_tokens)
        if isinstance(group.layer, AttentionCache):
            page = block_size * group.layer.token_bytes(ranks, kv_element_bytes)
        else:
            page = group.layer.bytes(ranks, state_element_bytes)
        total += group.layers * blocks * page
    return total
