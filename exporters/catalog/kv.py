"""Metrics of KV memory, by block pool."""

from vramscope.exporters.catalog.labels import ENGINE, NATIVE, POOL
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
    "Cached blocks taken back into use while free: by a prefix hit, or to be copied away.",
    POOL,
)
KV_SHARED = Metric(
    "vramscope_kv_shared_blocks",
    "gauge",
    "blocks",
    "Blocks with more than one reference.",
    POOL,
)
KV_SAVED = Metric(
    "vramscope_kv_saved_blocks",
    "gauge",
    "blocks",
    "References to blocks beyond each block's first: the blocks that sharing saves now.",
    POOL,
)
KV_EVICTED_AGE = Metric(
    "vramscope_kv_evicted_age_seconds",
    "histogram",
    "seconds",
    "Time since the last use of cached blocks that were evicted while free, by whether a prefix "
    "had hit them since they were filled (hit, never_hit); dated by the scan after it.",
    (*POOL, "reuse"),
    (1, 5, 30, 120, 600, 3600),
)
KV_LENGTH_SLACK = Metric(
    "vramscope_kv_length_slack_blocks",
    "gauge",
    "blocks",
    "The slack of vramscope_kv_blocks by the length of its request: by the upper bound of a class "
    "of computed tokens. A shared block's is with the request that has it fullest.",
    (*POOL, "length"),
)
KV_LENGTH_ENTRIES = Metric(
    "vramscope_kv_length_entries",
    "gauge",
    "blocks",
    "Blocks in the tables of running requests by the same classes; a block that requests share "
    "counts for each.",
    (*POOL, "length"),
)
KV_LENGTH_REQUESTS = Metric(
    "vramscope_kv_length_requests",
    "gauge",
    "requests",
    "Running requests by the upper bound of a class of computed tokens.",
    (*ENGINE, "length"),
)
KV_GROUP_ENTRIES = Metric(
    "vramscope_kv_group_entries",
    "gauge",
    "blocks",
    "Blocks in the tables of all requests by KV cache group, with vLLM's name of its kind; a "
    "block that requests share counts for each.",
    (*POOL, "group", "kind"),
)
KV_RESERVATION = Metric(
    "vramscope_kv_reservation_blocks",
    "gauge",
    "blocks",
    "Free blocks kept from new requests, by what for: the watermark (while anything runs), and "
    "admitted prefills that will still take them. May be more than are free.",
    (*ENGINE, "reason"),
)
KV_REFUSED = Metric(
    "vramscope_kv_refused_allocations_total",
    "counter",
    "allocations",
    "Allocations that found too few free blocks, by whose they were: a waiting request's (once "
    "each schedule that tries it), or a running one's, which preempts.",
    (*ENGINE, "whose"),
)
KV_REFUSED_WANTS = Metric(
    "vramscope_kv_refused_wanted_blocks",
    "gauge",
    "blocks",
    "Blocks that the waiting request refused last would take, were nothing of it cached; no "
    "sample when none was refused since the scan before.",
    ENGINE,
)
KV_STATIC_WASTE = Metric(
    "vramscope_kv_static_waste_ratio",
    "gauge",
    "ratio",
    "What an allocator of one contiguous range a request would waste here: max_model_len and "
    "power_of_two (it doubles) now; oracle (final lengths) of the requests that have left since "
    "the engine started, over the time they ran.",
    (*ENGINE, "allocator"),
)
KV_TOKEN_SECONDS = Metric(
    "vramscope_kv_left_token_seconds_total",
    "counter",
    "token-seconds",
    "Of requests that have left: tokens times the time they ran as they were (held), and as an "
    "oracle of their final length would have reserved them (oracle).",
    (*ENGINE, "kind"),
)
KV_CENSUS_AGE = Metric(
    "vramscope_kv_census_age_seconds",
    "gauge",
    "seconds",
    "Time since the last complete count of a pool's blocks began, 256 a scan: the age of "
    "duplicates, free run and ages of evictable blocks, which are estimates in larger pools.",
    POOL,
)
KV_DUPLICATES = Metric(
    "vramscope_kv_duplicate_blocks",
    "gauge",
    "blocks",
    "Cached blocks whose prefix another block has too, beyond one of each; by the census.",
    POOL,
)
KV_FREE_RUN = Metric(
    "vramscope_kv_free_run_ratio",
    "gauge",
    "ratio",
    "Longest run of adjacent free blocks over all free blocks, for transfer and offload; by the "
    "census.",
    POOL,
)
KV_OLDEST_EVICTABLE = Metric(
    "vramscope_kv_oldest_evictable_seconds",
    "gauge",
    "seconds",
    "Time since the last use of the least recently used evictable block; by the census.",
    POOL,
)
KV_EVICTABLE_BY_AGE = Metric(
    "vramscope_kv_evictable_age_blocks",
    "gauge",
    "blocks",
    "Evictable blocks by the upper bound in seconds of a class of the time since their last use; "
    "by the census.",
    (*POOL, "age"),
)
PROBE_DRIFT = Metric(
    "vramscope_probe_drift_blocks",
    "gauge",
    "blocks",
    "Blocks that the last census found counted as what they were not, and set right.",
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
    KV_SHARED,
    KV_SAVED,
    KV_LENGTH_SLACK,
    KV_LENGTH_ENTRIES,
    KV_LENGTH_REQUESTS,
    KV_BLOCK_SIZE,
    KV_GROUP_ENTRIES,
    KV_RESERVATION,
    KV_REFUSED,
    KV_REFUSED_WANTS,
    KV_EVICTIONS,
    KV_EVICTED_AGE,
    KV_RESURRECTIONS,
    KV_STATIC_WASTE,
    KV_TOKEN_SECONDS,
    KV_CENSUS_AGE,
    KV_DUPLICATES,
    KV_FREE_RUN,
    KV_OLDEST_EVICTABLE,
    KV_EVICTABLE_BY_AGE,
    PROBE_DRIFT,
)
