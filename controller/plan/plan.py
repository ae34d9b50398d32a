"""Everything that ``vramscope plan`` says, as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from vramscope.controller.plan.article import ArticleFormula, article_formula
from vramscope.controller.plan.suggest import Suggestion, suggest
from vramscope.controller.plan.target import Target
from vramscope.controller.plan.variants import Variant, variants
from vramscope.exporters.signals.memory.budget import Budget, EngineShape, budget
from vramscope.exporters.signals.memory.kv import CacheGroup, cache_groups, token_bytes
from vramscope.exporters.signals.memory.model import Model
from vramscope.exporters.signals.memory.quantization import Quantization
from vramscope.exporters.signals.memory.tensor import LayoutError
from vramscope.exporters.signals.memory.weights import checkpoint_bytes

__all__ = ["Plan", "make_plan"]

TENSOR_RANKS = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Plan:
    """A model on a GPU.

    Attributes:
        model: what is served.
        quantization: of its matrices.
        target: the GPU.
        shape: as asked for.
        budget: of one GPU with that shape.
        checkpoint_bytes: of the weights' files.
        token_bytes: of one more token, on one GPU.
        groups: the layers by what they keep.
        requests: by length, how many fit at once.
        tokens: in the pool, in requests of the model's longest sequence.
        suggestion: None where nothing fits.
        variants: what each quantisation would buy.
        article: the well-known formula beside the right one.
        fits_with: the least tensor parallelism with which it fits; None where none does.
    """

    model: Model
    quantization: Quantization | None
    target: Target
    shape: EngineShape
    budget: Budget
    checkpoint_bytes: int
    token_bytes: int
    groups: tuple[CacheGroup, ...]
    requests: Mapping[int, int]
    tokens: int
    suggestion: Suggestion | None
    variants: Sequence[Variant]
    article: ArticleFormula
    fits_with: int | None


def make_plan(
    model: Model,
    quantization: Quantization | None,
    target: Target,
    shape: EngineShape,
    lengths: Sequence[int],
    adapters: int = 0,
    measured: Mapping[str, int] | None = None,
) -> Plan:
    """Return the plan.

    Args:
        model: to be served.
        quantization: of its matrices.
        target: the GPU.
        shape: of the engine.
        lengths: of requests, in tokens; ascending.
        adapters: LoRA adapters that are served.
        measured: bytes by part of a live engine, in place of what is computed or estimated.

    Raises:
        LayoutError: the model can't be spread so.
        LayoutUnknownError: its pages don't go together in a way that is known here.
    """
    total = target.total_bytes
    found = budget(model, quantization, shape, total, measured)
    element_bytes = shape.kv_element_bytes or model.element_bits // 8
    groups = cache_groups([layer.cache for layer in model.layers])
    return Plan(
        model=model,
        quantization=quantization,
        target=target,
        shape=shape,
        budget=found,
        checkpoint_bytes=checkpoint_bytes(model, quantization),
        token_bytes=token_bytes(groups, shape.parallelism.tensor, element_bytes),
        groups=groups,
        requests={length: found.requests(length, shape.watermark) for length in lengths},
        tokens=found.tokens(model.max_length),
        suggestion=suggest(model, quantization, shape, total, lengths, adapters),
        variants=variants(model, quantization, shape, total, lengths),
        article=article_formula(model, lengths[-1], shape.block_size, element_bytes),
        fits_with=_fits_with(model, quantization, target, shape, lengths[0]),
    )


def _fits_with(
    model: Model,
    quantization: Quantization | None,
    target: Target,
    shape: EngineShape,
    length: int,
) -> int | None:
    for ranks in TENSOR_RANKS:
        wide = replace(shape, parallelism=replace(shape.parallelism, tensor=ranks))
        try:
            found = budget(model, quantization, wide, target.total_bytes)
        except LayoutError:
            continue
        if found.requests(length) >= 1:
            return ranks
    return None
