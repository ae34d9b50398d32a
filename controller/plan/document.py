"""A plan as JSON."""

from dataclasses import asdict
from typing import Any

from vramscope.controller.plan.measured import Comparison
from vramscope.controller.plan.plan import Plan
from vramscope.exporters.signals.memory.budget import Budget, EngineShape
from vramscope.exporters.signals.memory.cache import AttentionCache

__all__ = ["document"]


def document(plan: Plan, comparison: Comparison | None = None) -> dict[str, Any]:
    """Return the numbers; every size is in bytes and has that in its name."""
    model = plan.model
    return {
        "model": {
            "architecture": model.architecture,
            "layers": len(model.layers),
            "max_length_tokens": model.max_length,
            "weight_bits": model.element_bits,
            "quantization": None if plan.quantization is None else plan.quantization.method,
            "checkpoint_bytes": plan.checkpoint_bytes,
            "not_read": list(model.not_read),
        },
        "gpu": asdict(plan.target),
        "engine": _shape(plan.shape),
        "budget": _budget(plan.budget),
        "kv": {
            "token_bytes": plan.token_bytes,
            "groups": [
                {
                    "layers": group.layers,
                    "kind": "attention" if isinstance(group.layer, AttentionCache) else "state",
                    **asdict(group.layer),
                }
                for group in plan.groups
            ],
            "tokens": plan.tokens,
            "requests_by_length": {str(length): n for length, n in plan.requests.items()},
        },
        "fits": plan.budget.fits,
        "fits_with_tensor_parallel": plan.fits_with,
        "suggestion": None
        if plan.suggestion is None
        else {
            "engine": _shape(plan.suggestion.shape),
            "budget": _budget(plan.suggestion.budget),
            "why": plan.suggestion.why,
        },
        "variants": [
            {**asdict(one), "requests": {str(k): n for k, n in one.requests.items()}}
            for one in plan.variants
        ],
        "article_formula": asdict(plan.article),
        "measured": None if comparison is None else asdict(comparison),
    }


def _shape(shape: EngineShape) -> dict[str, Any]:
    values = asdict(shape)
    spread = values.pop("parallelism")
    return {**{f"{name}_parallel": ranks for name, ranks in spread.items()}, **values}


def _budget(budget: Budget) -> dict[str, Any]:
    layout = budget.layout
    return {
        "total_bytes": budget.total_bytes,
        "part_bytes": dict(budget.parts),
        "estimates": {name: asdict(one) for name, one in budget.estimates.items()},
        "block_size_tokens": None if layout is None else layout.block_size,
        "block_bytes": None if layout is None else layout.block_bytes,
        "blocks": budget.blocks,
        "pipeline_stage": budget.stage,
    }
