"""Metrics of an engine's adapters."""

from vramscope.exporters.catalog.labels import ENGINE, NATIVE
from vramscope.exporters.catalog.metric import Metric

__all__ = ["LORA_METRICS"]

LORA_REQUESTS = Metric(
    "vramscope_lora_requests_total",
    "counter",
    "requests",
    "Requests with an adapter, once each at first schedule, by where the adapter was just "
    "before (gpu: warm, cpu, disk: cold).",
    (*ENGINE, "tier"),
)
LORA_HIT = Metric(
    "vramscope_lora_hit_ratio",
    "gauge",
    "ratio",
    "Of the requests with an adapter since the engine started, the share whose adapter was in "
    "GPU memory.",
    ENGINE,
)
LORA_LOADS = Metric(
    "vramscope_lora_loads_total",
    "counter",
    "loads",
    "Adapter loads into GPU memory, once each, by the tier it came from (cpu, disk).",
    (*ENGINE, "tier"),
)
LORA_LOAD_SECONDS = Metric(
    "vramscope_lora_load_seconds",
    "histogram",
    "seconds",
    "Time a load of an adapter into GPU memory took, by the tier it came from; it stalls the step.",
    (*ENGINE, "tier"),
    (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
LORA_RESIDENT = Metric(
    "vramscope_lora_resident",
    "gauge",
    "",
    "1 for each adapter in GPU or CPU memory, with the tier it is in.",
    (*ENGINE, "adapter", "tier"),
)
LORA_SLOTS = Metric(
    "vramscope_lora_slots",
    "gauge",
    "adapters",
    "Adapters that fit into a tier at once.",
    (*ENGINE, "tier"),
    optional=NATIVE,
)

LORA_METRICS: tuple[Metric, ...] = (
    LORA_REQUESTS,
    LORA_HIT,
    LORA_LOADS,
    LORA_LOAD_SECONDS,
    LORA_RESIDENT,
    LORA_SLOTS,
)
