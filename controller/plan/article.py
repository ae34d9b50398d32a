"""The formula of the well-known articles for KV bytes, beside the one that is right for a model."""

from collections.abc import Iterator
from dataclasses import dataclass

from vramscope.exporters.signals.memory.cache import AttentionCache
from vramscope.exporters.signals.memory.kv import (
    CacheGroup,
    cache_groups,
    request_bytes,
    token_bytes,
)
from vramscope.exporters.signals.memory.model import Model

__all__ = ["ArticleFormula", "article_formula"]


@dataclass(frozen=True, slots=True)
class ArticleFormula:
    """Both for one model, on one GPU that holds all of it.

    Attributes:
        article_token_bytes: 2 x layers x query heads x head size x bytes; None for a model
            without attention.
        token_bytes: as the model keeps it, while no window is full.
        length: tokens of the request compared.
        article_request_bytes: the article's for a request of that length.
        request_bytes: as the model keeps it, whole blocks and states in it.
        why: what makes them differ; empty where they do not.
    """

    article_token_bytes: int | None
    token_bytes: int
    length: int
    article_request_bytes: int | None
    request_bytes: int
    why: tuple[str, ...]


def article_formula(
    model: Model, length: int, block_size: int, kv_element_bytes: int
) -> ArticleFormula:
    """Compare the two for a request of ``length`` tokens.

    Source:
        The article's: 2 x num_layers x num_heads x head_dim x bytes, such as in "Transformer
        Inference Arithmetic" (kipply, 2022), which is right for multi-head attention only.
    """
    groups = cache_groups([layer.cache for layer in model.layers])
    state_bytes = model.element_bits // 8
    head_size = model.hidden_size // model.heads if model.heads else 0
    article = None
    if model.heads:
        article = 2 * len(model.layers) * model.heads * head_size * kv_element_bytes
    return ArticleFormula(
        article_token_bytes=article,
        token_bytes=token_bytes(groups, 1, kv_element_bytes),
        length=length,
        article_request_bytes=None if article is None else article * length,
        request_bytes=request_bytes(groups, length, block_size, 1, kv_element_bytes, state_bytes),
        why=tuple(_reasons(model, groups, head_size)),
    )


def _reasons(model: Model, groups: tuple[CacheGroup, ...], head_size: int) -> Iterator[str]:
    attending = [
        (group.layer, group.layers) for group in groups if isinstance(group.layer, AttentionCache)
    ]
    for layer, _ in attending[:1]:
        if layer.latent:
            yield f"MLA keeps one latent of {layer.key_size} elements a layer, not heads of keys"
        else:
            if layer.kv_heads != model.heads:
                yield f"{layer.kv_heads} heads of keys and values serve {model.heads} query heads"
            if layer.key_size != head_size:
                yield f"a head has {layer.key_size} elements, not hidden size / heads = {head_size}"
    keeping = sum(layers for _, layers in attending)
    if keeping < len(model.layers):
        yield f"only {keeping} of {len(model.layers)} layers keep keys and values"
    for layer, layers in attending:
        if layer.window or layer.chunk:
            kind = f"a window of {layer.window}" if layer.window else f"chunks of {layer.chunk}"
            yield f"{layers} layers attend to {kind} tokens only"
    if len(attending) < len(groups):
        yield "states are by request, at any length"
