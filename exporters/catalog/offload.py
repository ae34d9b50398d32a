"""Metrics of KV cache outside the GPU: what a KV connector stores, finds and loads."""

from vramscope.exporters.catalog.labels import ENGINE, NATIVE
from vramscope.exporters.catalog.metric import Metric

__all__ = ["OFFLOAD_METRICS"]

CONNECTOR = (*ENGINE, "connector")
TIER = (*CONNECTOR, "tier")

OFFLOAD_QUERIED_TOKENS = Metric(
    "vramscope_kv_offload_queried_tokens_total",
    "counter",
    "tokens",
    "Prompt tokens that were not in GPU memory at first schedule and were looked up outside.",
    CONNECTOR,
    optional=NATIVE,
)
OFFLOAD_HIT_TOKENS = Metric(
    "vramscope_kv_offload_hit_tokens_total",
    "counter",
    "tokens",
    "Of the tokens looked up outside the GPU, those found there and taken, by where (host, disk, "
    "p2p; unspecified: the connector does not say).",
    TIER,
    optional=NATIVE,
)
OFFLOAD_HIT = Metric(
    "vramscope_kv_offload_hit_ratio",
    "gauge",
    "ratio",
    "Of the tokens looked up outside the GPU since the engine started, the share found there.",
    CONNECTOR,
    optional=NATIVE,
)
OFFLOAD_BYTES = Metric(
    "vramscope_kv_offload_bytes_total",
    "counter",
    "bytes",
    "KV bytes moved between GPU and the tier below it (store, load), all workers together.",
    (*CONNECTOR, "direction"),
    optional=NATIVE,
)
OFFLOAD_SECONDS = Metric(
    "vramscope_kv_offload_seconds_total",
    "counter",
    "seconds",
    "Time of those transfers, summed over transfers and workers, which overlap.",
    (*CONNECTOR, "direction"),
    optional=NATIVE,
)
OFFLOAD_REFUSED = Metric(
    "vramscope_kv_offload_refused_stores_total",
    "counter",
    "stores",
    "Stores that a tier refused, by reason (full: nothing could be evicted for it).",
    (*TIER, "reason"),
    optional=NATIVE,
)
OFFLOAD_TIER_BLOCKS = Metric(
    "vramscope_kv_offload_tier_blocks",
    "gauge",
    "blocks",
    "Blocks of a tier by what they hold, in the tier's own blocks, which may each hold several of "
    "the GPU's: cached (evictable), pinned by a transfer, clean. The states sum to the tier.",
    (*TIER, "state"),
)
OFFLOAD_BLOCKS = Metric(
    "vramscope_kv_offload_blocks_total",
    "counter",
    "blocks",
    "Blocks of a tier whose transfer is complete, by direction (store, load).",
    (*TIER, "direction"),
)
OFFLOAD_EVICTIONS = Metric(
    "vramscope_kv_offload_evictions_total",
    "counter",
    "blocks",
    "Cached blocks of a tier that made room for others.",
    TIER,
)
OFFLOAD_PRESSURE = Metric(
    "vramscope_kv_offload_pressure_ratio",
    "gauge",
    "ratio",
    "Share of a tier that transfers hold now and nothing can be evicted from; at 1 stores are "
    "refused.",
    TIER,
    optional=NATIVE,
)

OFFLOAD_METRICS: tuple[Metric, ...] = (
    OFFLOAD_QUERIED_TOKENS,
    OFFLOAD_HIT_TOKENS,
    OFFLOAD_HIT,
    OFFLOAD_BYTES,
    OFFLOAD_SECONDS,
    OFFLOAD_REFUSED,
    OFFLOAD_TIER_BLOCKS,
    OFFLOAD_BLOCKS,
    OFFLOAD_EVICTIONS,
    OFFLOAD_PRESSURE,
)
