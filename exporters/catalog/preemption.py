"""Metrics of preemption, and of what is computed again because of it."""

from vramscope.exporters.catalog.labels import ENGINE, NATIVE
from vramscope.exporters.catalog.metric import Metric

__all__ = ["PREEMPTION_METRICS"]

PREEMPTIONS = Metric(
    "vramscope_preemptions_total",
    "counter",
    "preemptions",
    "Running requests that lost their KV blocks, by reason. From vLLM's own page (source native) "
    "it has no reason, is seconds late and lacks those of requests aborted meanwhile.",
    (*ENGINE, "reason"),
    optional=NATIVE,
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

PREEMPTION_VICTIMS = Metric(
    "vramscope_preemption_victims_total",
    "counter",
    "requests",
    "Requests preempted at least once.",
    ENGINE,
)
PREEMPTION_REPEATS = Metric(
    "vramscope_preemption_repeats_total",
    "counter",
    "preemptions",
    "Preemptions of a request that had been preempted before.",
    ENGINE,
)
PREEMPTION_MOST = Metric(
    "vramscope_preemption_most_repeated",
    "gauge",
    "preemptions",
    "Preemptions of the live request that was preempted most often.",
    ENGINE,
)
PREEMPTION_WAITING = Metric(
    "vramscope_preemption_waiting_requests",
    "gauge",
    "requests",
    "Preempted requests that have not run again yet.",
    ENGINE,
)
PREEMPTION_ENDS = Metric(
    "vramscope_preemption_ends_total",
    "counter",
    "preemptions",
    "Preemptions that are over, by how (resumed: the request ran again; left: it left the engine "
    "before).",
    (*ENGINE, "how"),
)
PREEMPTION_REHIT = Metric(
    "vramscope_preemption_rehit_tokens_total",
    "counter",
    "tokens",
    "Of the tokens lost to preemption, those found in the prefix cache when the request resumed.",
    ENGINE,
)
PREEMPTION_ABANDONED = Metric(
    "vramscope_preemption_abandoned_tokens_total",
    "counter",
    "tokens",
    "Of the tokens lost to preemption, those whose request left before they were there again.",
    ENGINE,
)
PREEMPTION_RESUMPTION = Metric(
    "vramscope_preemption_resumption_seconds",
    "histogram",
    "seconds",
    "Time from a request's preemption to its next schedule.",
    ENGINE,
    (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120),
)
PREEMPTION_VICTIM_AGE = Metric(
    "vramscope_preemption_victim_age_seconds",
    "histogram",
    "seconds",
    "Time from a request's first schedule to its preemption.",
    ENGINE,
    (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600),
)

PREEMPTION_METRICS: tuple[Metric, ...] = (
    PREEMPTIONS,
    PREEMPTED_TOKENS,
    PREEMPTION_FREQUENCY,
    PREFILL_TOKENS,
    RECOMPUTED_TOKENS,
    RECOMPUTE_TAX,
    PREEMPTION_VICTIMS,
    PREEMPTION_REPEATS,
    PREEMPTION_MOST,
    PREEMPTION_WAITING,
    PREEMPTION_ENDS,
    PREEMPTION_REHIT,
    PREEMPTION_ABANDONED,
    PREEMPTION_RESUMPTION,
    PREEMPTION_VICTIM_AGE,
)
