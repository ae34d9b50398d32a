"""Metrics of KV memory, by block pool."""

from vramscope.exporters.catalog.labels import NATIVE, POOL
from vramscope.exporters.catalog.metric import Metric

__all__ = ["KV_METRICS"]

KV_BLOCKS = Metric(
    "vramscope_kv_blocks",
    "gauge",
    "blocks",
    "KV blocks by what they hold, in block equivalents; the states of a pool sum to its blocks.",
    (*POOL, "state"),
)
KV_FRAGMENTATION = Metric(
    "vramscope_kv_fragmentation_ratio",
    "gauge",
    "ratio",
    "KV fragmentation index: of the memory that holds no live token, the share that a new "
    "request can't have.",
    POOL,
)
KV_SLACK = Metric(
    "vramscope_kv_slack_ratio",
    "gauge",
    "ratio",
    "Slots of running requests' blocks that hold no live token, over the pool.",
    POOL,
)
KV_LOOKAHEAD = Metric(
    "vramscope_kv_lookahead_ratio",
    "gauge",
    "ratio",
    "The part of the slack kept for speculative tokens, at most, over the pool.",
    POOL,
)
KV_RESERVED = Metric(
    "vramscope_kv_reserved_ratio",
    "gauge",
    "ratio",
    "Free blocks that the watermark and in-flight reservations keep from a new request, over "
    "the pool.",
    POOL,
)
KV_HELD = Metric(
    "vramscope_kv_held_ratio",
    "gauge",
    "ratio",
    "Blocks referenced by no running request (transferring, finished but not freed, pinned), "
    "over the pool.",
    POOL,
)
KV_WASTE = Metric(
    "vramscope_kv_waste_ratio",
    "gauge",
    "ratio",
    "Of the blocks of running requests, the share that holds no live token.",
    POOL,
)
KV_EVICTION_EXPOSURE = Metric(
    "vramscope_kv_eviction_exposure_ratio",
    "gauge",
    "ratio",
    "Of the free blocks, the share whose cached prefix is lost when they are taken.",
    POOL,
)
KV_USABLE_BLOCKS = Metric(
    "vramscope_kv_usable_blocks",
    "gauge",
    "blocks",
    "Free blocks that a new request may take now.",
    POOL,
)
KV_BLOCK_SIZE = Metric(
    "vramscope_kv_block_size_tokens",
    "gauge",
    "tokens",
    "Token slots of a KV block, by KV cache group.",
    (*POOL, "group"),
    optional=NATIVE,
)
KV_EVICTIONS = Metric(
    "vramscope_kv_evictions_total",
    "counter",
    "blocks",
    "Cached blocks that were overwritten by an allocation or evicted on request.",
    POOL,
)
KV_RESURRECTIONS = Metric(
    "vramscope_kv_resurrections_total",
    "counter",
    "blocks",
    "Free blocks taken back into use by a prefix hit.",
    POOL,
)
PROBE_DRIFT = Metric(
    "vramscope_probe_drift_blocks",
    "gauge",
    "blocks",
    "Difference found by the last full scan between the probe's count of evictable blocks and "
    "the pool.",
    POOL,
)

KV_METRICS: tuple[Metric, ...] = (
    KV_BLOCKS,
    KV_FRAGMENTATION,
    KV_SLACK,
    KV_LOOKAHEAD,
    KV_RESERVED,
    KV_HELD,
    KV_WASTE,
    KV_EVICTION_EXPOSURE,
    KV_USABLE_BLOCKS,
    KV_BLOCK_SIZE,
    KV_EVICTIONS,
    KV_RESURRECTIONS,
    PROBE_DRIFT,
)
