"""Metrics of an engine's adapters."""

from vramscope.exporters.catalog.labels import ENGINE, NATIVE
from vramscope.exporters.catalog.metric import Metric

__all__ = [
    "LORA_ADAPTER_BYTES",
    "LORA_ADAPTER_EVICTIONS",
    "LORA_ADAPTER_LOADS",
    "LORA_ADAPTER_LOAD_SECONDS",
    "LORA_ADAPTER_RANK",
    "LORA_ADAPTER_REQUESTS",
    "LORA_EVICTIONS",
    "LORA_HIT",
    "LORA_LOADS",
    "LORA_LOAD_SECONDS",
    "LORA_METRICS",
    "LORA_REQUESTS",
    "LORA_RESIDENT",
    "LORA_SLOTS",
    "LORA_SLOTS_USED",
    "LORA_SLOT_WAITING",
    "LORA_SLOT_WAITS",
    "LORA_SLOT_WAIT_SECONDS",
    "LORA_ZOMBIES",
]

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
    "1 for each adapter in GPU or CPU memory, with the tier it is in; under adapter other, how "
    "many more there are that have no series of their own.",
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

LORA_EVICTIONS = Metric(
    "vramscope_lora_evictions_total",
    "counter",
    "adapters",
    "Adapters that left a tier to make room for another (gpu: their slot, cpu: CPU memory).",
    (*ENGINE, "tier"),
)
LORA_SLOTS_USED = Metric(
    "vramscope_lora_slots_used",
    "gauge",
    "adapters",
    "Adapters in a tier now; those in GPU memory are in CPU memory too.",
    (*ENGINE, "tier"),
)
LORA_ZOMBIES = Metric(
    "vramscope_lora_zombies",
    "gauge",
    "adapters",
    "Adapters in a tier whose name means another adapter by now and that no request uses, as "
    "unloading and loading again leaves them.",
    (*ENGINE, "tier"),
)
LORA_SLOT_WAITS = Metric(
    "vramscope_lora_slot_waits_total",
    "counter",
    "requests",
    "Requests that could not be scheduled because other adapters used all max_loras slots, once "
    "each.",
    ENGINE,
)
LORA_SLOT_WAIT_SECONDS = Metric(
    "vramscope_lora_slot_wait_seconds_total",
    "counter",
    "seconds",
    "Time such requests waited from then on, counted when they are scheduled or leave.",
    ENGINE,
)
LORA_SLOT_WAITING = Metric(
    "vramscope_lora_slot_wait_requests",
    "gauge",
    "requests",
    "Queued requests whose adapter has no slot while other adapters use all of them.",
    ENGINE,
)
LORA_ADAPTER_REQUESTS = Metric(
    "vramscope_lora_adapter_requests_total",
    "counter",
    "requests",
    "Requests of an adapter, once each at first schedule, by where it was just before; since the "
    "adapter got series of its own, all without them under other.",
    (*ENGINE, "adapter", "tier"),
)
LORA_ADAPTER_LOADS = Metric(
    "vramscope_lora_adapter_loads_total",
    "counter",
    "loads",
    "Loads of an adapter into GPU memory, by the tier it came from.",
    (*ENGINE, "adapter", "tier"),
)
LORA_ADAPTER_LOAD_SECONDS = Metric(
    "vramscope_lora_adapter_load_seconds_total",
    "counter",
    "seconds",
    "Time that loads of an adapter into GPU memory took on rank 0, by the tier it came from.",
    (*ENGINE, "adapter", "tier"),
)
LORA_ADAPTER_EVICTIONS = Metric(
    "vramscope_lora_adapter_evictions_total",
    "counter",
    "adapters",
    "Times an adapter left a tier to make room for another.",
    (*ENGINE, "adapter", "tier"),
)
LORA_ADAPTER_BYTES = Metric(
    "vramscope_lora_adapter_bytes",
    "gauge",
    "bytes",
    "Bytes of the weights of an adapter in memory, as rank 0 keeps them in CPU memory.",
    (*ENGINE, "adapter"),
)
LORA_ADAPTER_RANK = Metric(
    "vramscope_lora_adapter_rank",
    "gauge",
    "",
    "LoRA rank of an adapter in memory.",
    (*ENGINE, "adapter"),
)

LORA_METRICS: tuple[Metric, ...] = (
    LORA_REQUESTS,
    LORA_HIT,
    LORA_LOADS,
    LORA_LOAD_SECONDS,
    LORA_RESIDENT,
    LORA_SLOTS,
    LORA_EVICTIONS,
    LORA_SLOTS_USED,
    LORA_ZOMBIES,
    LORA_SLOT_WAITS,
    LORA_SLOT_WAIT_SECONDS,
    LORA_SLOT_WAITING,
    LORA_ADAPTER_REQUESTS,
    LORA_ADAPTER_LOADS,
    LORA_ADAPTER_LOAD_SECONDS,
    LORA_ADAPTER_EVICTIONS,
    LORA_ADAPTER_BYTES,
    LORA_ADAPTER_RANK,
)
