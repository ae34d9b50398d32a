"""Metrics of how fast KV memory fills, by block pool."""

from vramscope.exporters.catalog.labels import POOL
from vramscope.exporters.catalog.metric import Metric

__all__ = ["GROWTH_METRICS"]

KV_TAKEN = Metric(
    "vramscope_kv_taken_blocks_total",
    "counter",
    "blocks",
    "Blocks that left the free list, by what took them (decode; prefill, cached blocks taken back "
    "into use included).",
    (*POOL, "phase"),
)
KV_FREED = Metric(
    "vramscope_kv_freed_blocks_total",
    "counter",
    "blocks",
    "Blocks given back to the free list.",
    POOL,
)
KV_FLOW = Metric(
    "vramscope_kv_flow_blocks_per_second",
    "gauge",
    "blocks",
    "Estimate: blocks taken and freed a second, averaged over about 10 s, by flow (decode, "
    "prefill, freed).",
    (*POOL, "flow"),
)
KV_EXHAUSTION = Metric(
    "vramscope_kv_exhaustion_seconds",
    "gauge",
    "seconds",
    "Estimate: time until no usable block is left at the growth of the last 10 s; earliest and "
    "latest enclose 8 of 10 outcomes of such a growth. Absent when it isn't growing.",
    (*POOL, "bound"),
)

GROWTH_METRICS: tuple[Metric, ...] = (
    KV_TAKEN,
    KV_FREED,
    KV_FLOW,
    KV_EXHAUSTION,
)
