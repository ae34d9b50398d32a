"""Metrics of an engine's steps and of what waits for them."""

from vramscope.exporters.catalog.labels import ENGINE
from vramscope.exporters.catalog.metric import Metric

__all__ = ["LOAD_METRICS"]

STEP_SECONDS = Metric(
    "vramscope_engine_step_seconds",
    "histogram",
    "seconds",
    "Time of a scheduler step, from its schedule (or the end of the step before, if later) to its "
    "end; the sum is the time the engine was at work.",
    ENGINE,
    (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
STEP_REQUESTS = Metric(
    "vramscope_engine_step_requests_total",
    "counter",
    "requests",
    "Requests of the completed steps, summed over steps: over the steps it is the mean batch size.",
    ENGINE,
)
DECODE_TOKENS = Metric(
    "vramscope_decode_tokens_total",
    "counter",
    "tokens",
    "Tokens computed that were no prefill, speculative drafts included.",
    ENGINE,
)
BATCH_REQUESTS = Metric(
    "vramscope_engine_batch_requests",
    "gauge",
    "requests",
    "Requests of the last step.",
    ENGINE,
)
BATCH_TOKENS = Metric(
    "vramscope_engine_batch_tokens",
    "gauge",
    "tokens",
    "Tokens computed in the last step.",
    ENGINE,
)
WAITING_REQUESTS = Metric(
    "vramscope_engine_waiting_requests",
    "gauge",
    "requests",
    "Requests in the queue by what keeps them there (kv_blocks, lora_slot, remote_kv, grammar, "
    "batch_full, token_budget, paused; arrived: not looked at yet; other).",
    (*ENGINE, "reason"),
)
OLDEST_WAIT = Metric(
    "vramscope_engine_oldest_wait_seconds",
    "gauge",
    "seconds",
    "Time the oldest request never scheduled yet had waited at the last scan. Absent without one.",
    ENGINE,
)
QUEUE_SECONDS = Metric(
    "vramscope_engine_queue_seconds",
    "histogram",
    "seconds",
    "Time from a request's arrival in the engine to its first schedule.",
    ENGINE,
    (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300),
)

LOAD_METRICS: tuple[Metric, ...] = (
    STEP_SECONDS,
    STEP_REQUESTS,
    DECODE_TOKENS,
    BATCH_REQUESTS,
    BATCH_TOKENS,
    WAITING_REQUESTS,
    OLDEST_WAIT,
    QUEUE_SECONDS,
)
