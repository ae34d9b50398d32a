"""A plan as text for a terminal."""

from collections.abc import Iterator, Mapping

from vramscope.controller.plan.looks import PART_LOOKS, PARTS
from vramscope.controller.plan.measured import Comparison
from vramscope.controller.plan.plan import Plan
from vramscope.controller.plan.units import gib, size
from vramscope.exporters.pictures.style import Style
from vramscope.exporters.signals.memory.cache import AttentionCache
from vramscope.exporters.signals.memory.kv import CacheGroup

__all__ = ["text"]

BAR_WIDTH = 72


def text(plan: Plan, comparison: Comparison | None, style: Style) -> str:
    """Return the page.

    Args:
        plan: to be shown.
        comparison: with a live engine.
        style: what the terminal shows.
    """
    lines = [*_head(plan), "", *_bar(plan, style), ""]
    lines += _kv(plan)
    if comparison is not None:
        lines += ["", *_measured(comparison)]
    lines += ["", *_suggestion(plan), "", *_variants(plan), "", *_article(plan), *_notes(plan)]
    return "\n".join(lines) + "\n"


def _head(plan: Plan) -> Iterator[str]:
    model, spread = plan.model, plan.shape.parallelism
    precision = f"{model.element_bits}-bit"
    if plan.quantization is not None:
        precision = f"{plan.quantization.method}, {plan.quantization.bits}-bit matrices"
    yield (
        f"{model.architecture}: {len(model.layers)} layers, {precision}, "
        f"weights {size(plan.checkpoint_bytes)}, up to {model.max_length:,} tokens"
    )
    yield (
        f"{plan.target.name}: {gib(plan.target.total_bytes)} ({plan.target.source}), "
        f"TP {spread.tensor} x PP {spread.pipeline} x DP {spread.data}"
    )


def _bar(plan: Plan, style: Style) -> Iterator[str]:
    parts = plan.budget.parts
    scale = max(plan.target.total_bytes, sum(max(0, one) for one in parts.values()))
    cells, filled, ends = "", 0, 0.0
    for part in PARTS:
        look = PART_LOOKS[part.name]
        ends += max(0, parts[part.name]) / scale * BAR_WIDTH
        run = (look.character if style.unicode else look.ascii) * (round(ends) - filled)
        filled = round(ends)
        cells += f"\x1b[38;5;{look.ansi}m{run}\x1b[0m" if style.colour and run else run
    yield f"one GPU  [{cells}]"
    for part in PARTS:
        look = PART_LOOKS[part.name]
        mark = look.character if style.unicode else look.ascii
        share = parts[part.name] / plan.target.total_bytes
        line = f"  {mark} {part.title:40} {gib(parts[part.name]):>10} {share:>6.1%}"
        estimate = plan.budget.estimates.get(part.name)
        if estimate is not None and estimate.high:
            line += f"  from {gib(estimate.low)} to {gib(estimate.high)}"
        yield line


def _kv(plan: Plan) -> Iterator[str]:
    budget = plan.budget
    yield f"KV cache: {size(plan.token_bytes)} a token on each GPU"
    for group in plan.groups:
        yield f"  {_group(group)}"
    if not budget.fits or budget.layout is None:
        lacks = gib(-budget.parts["kv_pool"]) if budget.parts["kv_pool"] < 0 else "a block"
        ranks = plan.fits_with
        more = f"it fits with --tp {ranks}" if ranks else "no --tp up to 16 is enough"
        yield f"DOES NOT FIT: {lacks} too little; {more}"
        return
    yield (
        f"  {budget.blocks:,} blocks of {budget.layout.block_size} tokens "
        f"({size(budget.layout.block_bytes)} each), {plan.tokens:,} tokens"
    )
    for length, count in plan.requests.items():
        yield f"  requests of {length:>7,} tokens at once: {count:,}"


def _group(group: CacheGroup) -> str:
    layer = group.layer
    if not isinstance(layer, AttentionCache):
        return f"{group.layers} layers with a {layer.kind} state a request"
    if layer.latent:
        return f"{group.layers} layers with a latent of {layer.key_size} (MLA), on every rank"
    kind = "attend to all tokens"
    if layer.window is not None:
        kind = f"attend to a window of {layer.window:,} tokens"
    if layer.chunk is not None:
        kind = f"attend within chunks of {layer.chunk:,} tokens"
    return f"{group.layers} layers {kind}, {layer.kv_heads} KV heads of {layer.key_size}"


def _measured(comparison: Comparison) -> Iterator[str]:
    yield f"measured on engine {comparison.engine} (its parts are in the plan above)"
    for row in comparison.rows:
        seen = "not known" if row.measured_bytes is None else size(row.measured_bytes)
        error = "" if row.error is None else f"  plan off by {row.error:+.1%}"
        yield f"  {row.part:12} computed {size(row.planned_bytes):>12}  measured {seen:>12}{error}"
    if comparison.pool_from_blocks_bytes is not None:
        yield (
            f"  its {comparison.blocks:,} blocks by this layout: "
            f"{size(comparison.pool_from_blocks_bytes)}"
        )


def _suggestion(plan: Plan) -> Iterator[str]:
    found = plan.suggestion
    if found is None:
        yield "no settings make it fit"
        return
    shape = found.shape
    values: Mapping[str, object] = {
        "gpu_memory_utilization": shape.gpu_memory_utilization,
        "max_num_seqs": shape.max_num_seqs,
        "block_size": shape.block_size,
        "watermark": shape.watermark,
        "max_loras": shape.max_loras,
    }
    yield "suggested"
    for name, why in found.why.items():
        option = f"--{name.replace('_', '-')} {values[name]}"
        yield f"  {option:34} {why}"


def _variants(plan: Plan) -> Iterator[str]:
    lengths = list(plan.requests)
    heads = "".join(f"{f'{length:,} tokens':>16}" for length in lengths)
    yield f"{'what each quantisation would buy':40}{'weights':>10}{'KV pool':>11}{heads}"
    for one in plan.variants:
        counts = "".join(f"{one.requests[length]:>16,}" for length in lengths)
        yield f"  {one.name:38}{gib(one.weight_bytes):>10}{gib(one.kv_pool_bytes):>11}{counts}"


def _article(plan: Plan) -> Iterator[str]:
    found = plan.article
    if found.article_token_bytes is None:
        yield "the articles' formula (2 x layers x heads x head size x bytes) has no meaning here"
    else:
        yield (
            "the articles' formula, 2 x layers x heads x head size x bytes: "
            f"{size(found.article_token_bytes)} a token; right: {size(found.token_bytes)}"
        )
        if found.article_request_bytes is not None and found.request_bytes:
            ratio = found.article_request_bytes / found.request_bytes
            yield (
                f"  a request of {found.length:,} tokens: {size(found.article_request_bytes)} "
                f"against {size(found.request_bytes)}, {ratio:.1f} times as much"
            )
    yield from (f"  because {reason}" for reason in found.why)


def _notes(plan: Plan) -> Iterator[str]:
    if plan.budget.layout is not None and plan.budget.layout.padding_layers:
        yield ""
        yield (
            f"note: vLLM pads the groups of layers with {plan.budget.layout.padding_layers} that "
            "hold nothing"
        )
    if plan.model.not_read:
        yield ""
        yield (
            "note: fields of the config that are not known here and may change the numbers: "
            + ", ".join(plan.model.not_read)
        )
