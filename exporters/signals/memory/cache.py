"""What one layer keeps of a request: keys and values by token, or a state by request."""

import math
from dataclasses import dataclass

from vramscope.exporters.signals.memory.tensor import Split

__all__ = ["AttentionCache", "CacheLayer", "StateCache"]


@dataclass(frozen=True, slots=True)
class AttentionCache:
    """Keys and values of one attention layer.

    Attributes:
        kv_heads: of the model. A rank holds its share of them, and one at least: with more ranks
            than heads several hold the same.
        key_size: elements of a head's key.
        value_size: elements of a head's value; 0 where it is part of the key (MLA's latent).
        window: tokens that a token attends to, itself included; None for all.
        chunk: tokens of a chunk outside which none is attended to; None for all.
        latent: MLA: one latent instead of heads, the same on every rank.
    """

    kv_heads: int
    key_size: int
    value_size: int
    window: int | None = None
    chunk: int | None = None
    latent: bool = False

    def token_bytes(self, ranks: int, element_bytes: int) -> int:
        """Return bytes of a token on a rank.

        Raises:
            LayoutError: the heads can't be dealt out evenly.

        >>> AttentionCache(8, 128, 128).token_bytes(ranks=4, element_bytes=2)
        1024
        """
        split = Split(0, self.kv_heads, "num_key_value_heads", replicate=True)
        held = 1 if self.latent else split.size(self.kv_heads, ranks)
        return held * (self.key_size + self.value_size) * element_bytes


@dataclass(frozen=True, slots=True)
class State:
    """One tensor of a layer's state.

    Attributes:
        shape: of the whole model, with the axis that ranks share first.
        bits: of an element; None for the model's own precision.
        units: that ranks share, as in ``Split``; None for the first axis itself.
        what: the config's name for them.
        replicate: with more ranks than units, several ranks hold the same one.
    """

    shape: tuple[int, ...]
    bits: int | None = None
    units: int | None = None
    what: str = "intermediate size"
    replicate: bool = False


@dataclass(frozen=True, slots=True)
class StateCache:
    """The state of one layer that has no keys and values: the same size at any length.

    Attributes:
        states: its tensors.
        kind: ``mamba1``, ``mamba2``, ``gated_delta_net``.
    """

    states: tuple[State, ...]
    kind: str

    def bytes(self, ranks: int, element_bytes: int) -> int:
        """Return bytes of a request on a rank."""
        total = 0
        for state in self.states:
            first = state.shape[0]
            split = Split(0, state.units or first, state.what, state.replicate)
            held = split.size(first, ranks)
            size = element_bytes if state.bits is None else state.bits // 8
            total += held * math.prod(state.shape[1:]) * size
        return total


CacheLayer = AttentionCache | StateCache
