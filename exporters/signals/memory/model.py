"""A model as memory sees it: which tensors it has, layer by layer, and what each layer keeps."""

from collections.abc import Iterator
from dataclasses import dataclass

from vramscope.exporters.signals.memory.cache import CacheLayer
from vramscope.exporters.signals.memory.tensor import Tensor

__all__ = ["Layer", "Model"]


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer.

    Attributes:
        tensors: its weights.
        cache: what it keeps of a request; None for a layer without attention or state.
    """

    tensors: tuple[Tensor, ...]
    cache: CacheLayer | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """Everything that the arithmetic needs of a model.

    Attributes:
        architecture: vLLM's name of it.
        hidden_size: elements of a token between layers.
        intermediate_size: widest of an MLP, of all experts that a token goes to.
        vocabulary: tokens, without padding.
        max_length: tokens of a sequence at most, by the config.
        checkpoint_bits: of a weight in the checkpoint that no quantisation replaces.
        element_bits: of the same as it is loaded.
        heads: query heads; 0 for a model without attention.
        embedding: tensors before the layers.
        layers: in order.
        last: tensors after the layers.
        tied: the output projection is the embedding, and no tensor of its own.
        towers: tensors of encoders for images or sound; a rank holds its share of each.
        not_read: fields of the config that nobody asked for and that are not known to be harmless.
    """

    architecture: str
    hidden_size: int
    intermediate_size: int
    vocabulary: int
    max_length: int
    checkpoint_bits: int
    element_bits: int
    heads: int
    embedding: tuple[Tensor, ...]
    layers: tuple[Layer, ...]
    last: tuple[Tensor, ...]
    tied: bool
    towers: tuple[Tensor, ...] = ()
    not_read: tuple[str, ...] = ()

    def tensors(self) -> Iterator[Tensor]:
        """Yield all tensors of the checkpoint."""
        yield from self.embedding
        yield from self.towers
        for layer in self.layers:
            yield from layer.tensors
        yield from self.last
