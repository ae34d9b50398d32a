"""How vLLM cuts a KV pool into blocks: one size of page for all groups of layers."""

from collections.abc import Sequence
from dataclasses import dataclass

from vramscope.exporters.signals.memory.cache import AttentionCache, CacheLayer
from vramscope.exporters.signals.memory.kv import CacheGroup, request_blocks

__all__ = ["BlockLayout", "LayoutUnknownError", "block_layout"]

from vramscope.exporters.errors import VramscopeError

BLOCK_ALIGNMENT = 16
PADDED_UP_TO = 1.5


class LayoutUnknownError(VramscopeError):
    """Layers whose pages do not go together in a way that is known here."""


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """The blocks of one pool.

    A block is one page of each layer of one group, so all groups take blocks of the same bytes
    from the same pool.

    Attributes:
        block_size: token slots of a block of attention.
        block_bytes: of a block, on a rank.
        tables: by kind of layer: what a layer keeps, and how many groups, each with a table of its
            own, have such layers.
        padding_layers: that exist only to make groups alike.
        raised: the block size is larger than asked for, so that a page holds a state.
    """

    block_size: int
    block_bytes: int
    tables: tuple[tuple[CacheLayer, int], ...]
    padding_layers: int = 0
    raised: bool = False

    def request_blocks(self, tokens: int, step_tokens: int = 1) -> int:
        """Return the blocks that a request of ``tokens`` takes, over all groups."""
        return sum(
            groups * request_blocks(layer, tokens, self.block_size, step_tokens)
            for layer, groups in self.tables
        )


def block_layout(
    groups: Sequence[CacheGroup],
    block_size: int,
    tensor_ranks: int,
    kv_element_bytes: int,
    state_element_bytes: int,
) -> BlockLayout | None:
    """Return how a pool for these layers is cut; None where nothing is kept of a request.

    Layers that keep the same are dealt into groups of one size: of the rarest kind, or of the
    commonest where that is less than 1.5 times as many. Where there are states, the block size is
    raised, in steps of 16 tokens, until a page of attention holds a state.

    Args:
        groups: the layers by what they keep.
        block_size: token slots asked for.
        tensor_ranks: of tensor parallelism.
        kv_element_bytes: of a key or value.
        state_element_bytes: of a state's element.

    Raises:
        LayoutUnknownError: pages of several sizes beside each other.
        LayoutError: the heads can't be split so.

    Source:
        vLLM 0.32, vllm/v1/core/kv_cache_utils.py.
    """
    if not groups:
        return None
    tokens = {
        group.layer.token_bytes(tensor_ranks, kv_element_bytes)
        for group in groups
        if isinstance(group.layer, AttentionCache)
    }
    states = {
        group.layer.bytes(tensor_ranks, state_element_bytes)
        for group in groups
        if not isinstance(group.layer, AttentionCache)
    }
    if len(groups) == 1 and states:
        return BlockLayout(block_size, groups[0].layers * max(states), ((groups[0].layer, 1),))
    if len(tokens) != 1 or len(states) > 1:
        raise LayoutUnknownError(
            f"layers with {len(tokens)} sizes of a token and {len(states)} of a state: "
            "want one of each: how vLLM lays out others depends on the platform"
        )
    token = max(tokens)
    size = block_size
    if states:
        least = -(-max(states) // (BLOCK_ALIGNMENT * token)) * BLOCK_ALIGNMENT
        size = max(block_size, least)
    counts = [group.layers for group in groups]
    together = max(counts) if max(counts) < PADDED_UP_TO * min(counts) else min(counts)
    tables = tuple((group.layer, -(-group.layers // together)) for group in groups)
    return BlockLayout(
        block_size=size,
        block_bytes=together * size * token,
        tables=tables,
        padding_layers=sum(count * together for _, count in tables) - sum(counts),
        raised=size > block_size,
    )
