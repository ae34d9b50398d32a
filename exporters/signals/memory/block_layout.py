"""How vLLM cuts a KV pool into blocks: one size of page for all groups of layers."""

from collections.abc import Sequence
from dataclasses import dataclass

from vramscope.exporters.errors import VramscopeError
from vramscope.exporters.signals.memory.cache import AttentionCache, CacheLayer
from vramscope.exporters.signals.memory.kv import request_blocks
from vramscope.exporters.signals.memory.tensor import LayoutError

__all__ = ["BlockLayout", "LayoutUnknownError", "block_layout"]

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
        block_bytes: of a block, on a rank of the stage.
        tables: by kind of layer: what a layer keeps, and how many groups, each with a table of its
            own, have such layers.
        states: that a request holds in a table of states, at most. 2 beside attention: prefix
            caching is on there, and the state at a block's edge stays while the next one is made.
        padding_layers: that exist only to make groups alike.
        raised: the block size is larger than asked for, so that a page holds a state.
    """

    block_size: int
    block_bytes: int
    tables: tuple[tuple[CacheLayer, int], ...]
    states: int = 1
    padding_layers: int = 0
    raised: bool = False

    def request_blocks(self, tokens: int, step_tokens: int = 1) -> int:
        """Return the blocks that a request of ``tokens`` takes, over all groups."""
        return sum(
            groups * self._table_blocks(layer, tokens, step_tokens) for layer, groups in self.tables
        )

    def _table_blocks(self, layer: CacheLayer, tokens: int, step_tokens: int) -> int:
        if isinstance(layer, AttentionCache):
            return request_blocks(layer, tokens, self.block_size, step_tokens)
        return min(self.states, -(-tokens // self.block_size))


def block_layout(
    layers: Sequence[CacheLayer | None],
    block_size: int,
    tensor_ranks: int,
    kv_element_bytes: int,
    state_element_bytes: int,
    stage: range | None = None,
) -> BlockLayout | None:
    """Return how a pool for these layers is cut; None where nothing is kept of a request.

    Layers that keep the same are dealt into groups of one size: of the rarest kind, or of the
    commonest where that is less than 1.5 times as many. Where there are states, the block size is
    raised, in steps of 16 tokens, until a page of attention holds a state. All pipeline stages
    share the groups of the whole model; a block of a stage is as large as its largest part of one.

    Args:
        layers: what each of the model's keeps, in order.
        block_size: token slots asked for.
        tensor_ranks: of tensor parallelism.
        kv_element_bytes: of a key or value.
        state_element_bytes: of a state's element.
        stage: the layers of the rank's pipeline stage; None for all.

    Raises:
        LayoutUnknownError: pages of several sizes beside each other.
        LayoutError: the heads can't be split so, or the stage keeps nothing while others do.

    Source:
        vLLM 0.32, vllm/v1/core/kv_cache_utils.py.
    """
    numbers: dict[CacheLayer, list[int]] = {}
    for number, layer in enumerate(layers):
        if layer is not None:
            numbers.setdefault(layer, []).append(number)
    if not numbers:
        return None
    together = _layers_of_a_group([len(alike) for alike in numbers.values()])
    groups = {layer: -(-len(alike) // together) for layer, alike in numbers.items()}
    held = range(len(layers)) if stage is None else stage
    pages = max(
        sum(number in held for number in alike[first :: groups[layer]])
        for layer, alike in numbers.items()
        for first in range(groups[layer])
    )
    if not pages:
        raise LayoutError(
            f"layers {held.start} to {held.stop - 1} keep nothing of a request: "
            "vLLM can't cut a pool for such a pipeline stage"
        )
    size, page_bytes = _page(
        [*numbers], block_size, tensor_ranks, kv_element_bytes, state_element_bytes
    )
    return BlockLayout(
        block_size=size,
        block_bytes=pages * page_bytes,
        tables=tuple(groups.items()),
        states=2 if any(isinstance(layer, AttentionCache) for layer in numbers) else 1,
        padding_layers=sum(
            groups[layer] * together - len(alike) for layer, alike in numbers.items()
        ),
        raised=size > block_size,
    )


def _layers_of_a_group(counts: Sequence[int]) -> int:
    least, most = min(counts), max(counts)
    return most if most < PADDED_UP_TO * least else least


def _page(
    kinds: Sequence[CacheLayer],
    block_size: int,
    tensor_ranks: int,
    kv_element_bytes: int,
    state_element_bytes: int,
) -> tuple[int, int]:
    """Return (token slots, bytes) of one layer's page."""
    tokens = {
        kind.token_bytes(tensor_ranks, kv_element_bytes)
        for kind in kinds
        if isinstance(kind, AttentionCache)
    }
    states = {
        kind.bytes(tensor_ranks, state_element_bytes)
        for kind in kinds
        if not isinstance(kind, AttentionCache)
    }
    if len(kinds) == 1 and states:
        return block_size, max(states)
    if len(tokens) != 1 or len(states) > 1:
        raise LayoutUnknownError(
            f"layers with {len(tokens)} sizes of a token and {len(states)} of a state: "
            "want one of each: how vLLM lays out others depends on the platform"
        )
    token = max(tokens)
    least = -(-max(states, default=0) // (BLOCK_ALIGNMENT * token)) * BLOCK_ALIGNMENT
    size = max(block_size, least)
    return size, size * token
