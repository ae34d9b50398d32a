"""Metrics of preemption, and of what is computed again because of it."""

from vramscope.exporters.catalog.labels import ENGINE
from vramscope.exporters.catalog.metric import Metric

__all__ = ["PREEMPTION_METRICS"]

PREEMPTIONS = Metric(
    "vramscope_preemptions_total",
    "counter",
    "preemptions",
    "Running requests that lost their KV blocks, by reason.",
    (*ENGINE, "reason"),
)
PREEMPTED_TOKENS = Metric(
    "vramscope_preempted_tokens_total",
    "counter",
    "tokens",
    "Computed tokens thrown away by preemption, counted at the moment it happens.",
    ENGINE,
)
PREEMPTION_FREQUENCY = Metric(
    "vramscope_preemptions_per_100_requests",
    "gauge",
    "preemptions",
    "Preemptions per 100 first schedules since the engine started, by reason.",
    (*ENGINE, "reason"),
)
PREFILL_TOKENS = Metric(
    "vramscope_prefill_tokens_total",
    "counter",
    "tokens",
    "Prefill tokens computed (prefix-cache hits excluded, recomputed ones included).",
    ENGINE,
)
RECOMPUTED_TOKENS = Metric(
    "vramscope_recomputed_tokens_total",
    "counter",
    "tokens",
    "Prefill tokens computed below the request's earlier high-water mark.",
    ENGINE,
)
RECOMPUTE_TAX = Metric(
    "vramscope_recompute_tax_ratio",
    "gauge",
    "ratio",
    "Recomputed tokens over prefill tokens since the engine started.",
    ENGINE,
)

PREEMPTION_METRICS: tuple[Metric, ...] = (
    PREEMPTIONS,
    PREEMPTED_TOKENS,
    PREEMPTION_FREQUENCY,
    PREFILL_TOKENS,
    RECOMPUTED_TOKENS,
    RECOMPUTE_TAX,
)
