"""Metrics of the controller: what it was asked, what it decided, what came of it."""

from vramscope.exporters.catalog.metric import Metric

__all__ = ["CONTROLLER_METRICS"]

REQUESTS = Metric(
    "vramscope_requests_total",
    "counter",
    "requests",
    "Requests that reached the front door, by how they ended (completed, client_error, "
    "engine_error, cancelled, no_engine, unknown_model); model is _none where the request "
    "named none that is served.",
    ("model", "outcome"),
)
DECISIONS = Metric(
    "vramscope_decisions_total",
    "counter",
    "decisions",
    "Engine picks, by policy and by what decided.",
    ("policy", "reason"),
)
LORA_PICKS = Metric(
    "vramscope_router_lora_picks_total",
    "counter",
    "picks",
    "Picks for a request with an adapter, by where the picked engine reported it (gpu, cpu, "
    "disk, unreported).",
    ("warmth",),
)
TTFT = Metric(
    "vramscope_time_to_first_token_seconds",
    "histogram",
    "seconds",
    "Time from a request's arrival at the front door to the first byte of a streamed answer.",
    ("model",),
    (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
REQUEST_SECONDS = Metric(
    "vramscope_request_seconds",
    "histogram",
    "seconds",
    "Time from a request's arrival at the front door to the end of its answer.",
    ("model",),
    (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300),
)
RETRIES = Metric(
    "vramscope_dispatch_retries_total",
    "counter",
    "retries",
    "Requests sent to another engine because this one refused the connection; nothing had "
    "been sent to it.",
    ("engine",),
)
INFLIGHT = Metric(
    "vramscope_inflight_requests",
    "gauge",
    "requests",
    "Requests dispatched to an engine and not yet answered in full, by the ledger.",
    ("engine",),
)
ENGINE_UP = Metric(
    "vramscope_engine_up",
    "gauge",
    "",
    "1 when the engine's process lives and answers its health check.",
    ("engine", "model"),
)

CONTROLLER_METRICS: tuple[Metric, ...] = (
    REQUESTS,
    DECISIONS,
    LORA_PICKS,
    RETRIES,
    TTFT,
    REQUEST_SECONDS,
    INFLIGHT,
    ENGINE_UP,
)
