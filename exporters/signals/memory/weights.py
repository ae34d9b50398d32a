"""Bytes of a model's weights: in the checkpoint, and on each rank of an engine."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from vramscope.exporters.signals.memory.cache import AttentionCache
from vramscope.exporters.signals.memory.model import Layer, Model
from vramscope.exporters.signals.memory.quantization import Quantization
from vramscope.exporters.signals.memory.tensor import LayoutError, Tensor

__all__ = ["Parallelism", "checkpoint_bytes", "rank_weight_bytes", "stage_layers"]


@dataclass(frozen=True, slots=True)
class Parallelism:
    """How an engine is spread over GPUs.

    Attributes:
        tensor: ranks that share each layer.
        pipeline: stages that share the layers.
        data: replicas. They share nothing but the experts of a mixture, which are split over
            tensor x data ranks.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1


def checkpoint_bytes(model: Model, quantization: Quantization | None = None) -> int:
    """Return bytes of all tensors as a checkpoint has them, without what vLLM pads.

    All are taken to be of the config's precision, as transformers saves them. Some publishers
    keep the few elements of a state's decay or of a router's correction in 32 bits.
    """
    return sum(
        tensor.copies
        * _bytes(
            name, replace(tensor, bits=None), tensor.shape, model.checkpoint_bits, quantization
        )
        for name, tensor in _named(model, range(len(model.layers)), first=True, last=True)
    )


def rank_weight_bytes(
    model: Model,
    quantization: Quantization | None = None,
    parallelism: Parallelism | None = None,
    stage: int = 0,
) -> int:
    """Return bytes of the weights that a rank holds, before any conversion after loading.

    Args:
        model: what is loaded.
        quantization: of its matrices.
        parallelism: of the engine; None for one rank.
        stage: the rank's pipeline stage.

    Raises:
        LayoutError: the model can't be spread so.
    """
    spread = parallelism or Parallelism()
    layers = stage_layers(len(model.layers), spread.pipeline)[stage]
    first, last = stage == 0, stage == spread.pipeline - 1
    total = 0
    for name, tensor in _named(model, layers, first=first, last=last):
        ranks = spread.tensor * (spread.data if tensor.experts else 1)
        shape = tensor.rank_shape(ranks)
        if tensor.experts and quantization is not None:
            shape = _padded(tensor, shape, quantization)
        total += tensor.copies * _bytes(name, tensor, shape, model.element_bits, quantization)
    if quantization is not None:
        caches = [model.layers[number].cache for number in layers]
        attending = sum(isinstance(one, AttentionCache) and not one.latent for one in caches)
        total += attending * quantization.attention_bytes(model.element_bits)
    return total


def stage_layers(layers: int, stages: int) -> list[range]:
    """Return the layers of each pipeline stage.

    As vLLM deals them out: evenly, what is left over one each from the last stage but one
    backwards, since the last has the output projection and the first the embedding.

    Raises:
        LayoutError: there are fewer layers than stages.

    >>> [len(stage) for stage in stage_layers(10, 4)]
    [2, 3, 3, 2]
    """
    if layers < stages:
        raise LayoutError(f"num_hidden_layers is {layers}: can't be split over {stages} stages")
    sizes = [layers // stages] * stages
    for back in range(2, layers % stages + 2):
        sizes[-back] += 1
    ends = [sum(sizes[: n + 1]) for n in range(stages)]
    return [range(end - size, end) for size, end in zip(sizes, ends, strict=True)]


def _named(
    model: Model, layers: Sequence[int], *, first: bool, last: bool
) -> Iterator[tuple[str, Tensor]]:
    """Yield (name, tensor) of what a stage holds; layers first, whose heads decide what divides."""
    for number in layers:
        layer: Layer = model.layers[number]
        yield from ((f"layers.{number}.{t.name}", t) for t in layer.tensors)
    if first:
        yield from ((t.name, t) for t in model.embedding)
        yield from ((f"visual.{t.name}", t) for t in model.towers)
    if last:
        yield from ((t.name, t) for t in model.last)
        if model.tied and not first:
            yield model.embedding[0].name, model.embedding[0]  # the output projection


def _padded(tensor: Tensor, shape: tuple[int, ...], scheme: Quantization) -> tuple[int, ...]:
    axis = tensor.split.axis
    if axis is None:
        return shape
    return (*shape[:axis], scheme.rank_size(shape[axis]), *shape[axis + 1 :])


def _bytes(
    name: str,
    tensor: Tensor,
    shape: tuple[int, ...],
    element_bits: int,
    quantization: Quantization | None,
) -> int:
    """Return bytes of one copy of so much of a tensor."""
    if tensor.linear and quantization is not None:
        module = name.removesuffix(".weight")
        if not module.startswith("visual.") and quantization.covers(module):
            outputs, inputs = shape
            return quantization.matrix_bytes(outputs, inputs, element_bits)
    return math.prod(shape) * (tensor.bits or element_bits) // 8
