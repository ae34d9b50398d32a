"""KV memory of one block pool: what a new request can have, and what keeps the rest from it.

Notation of the design: B usable blocks, T live, S slack, H held, R reserved; all in block
equivalents, so that groups of different block sizes add up.
"""

from vramscope.exporters.signals.kv_samples import CensusSample, KvSample

__all__ = [
    "eviction_exposure",
    "fragmentation_index",
    "free_run_ratio",
    "held_ratio",
    "kv_waste",
    "logically_free_blocks",
    "lookahead_ratio",
    "reserved_ratio",
    "slack_ratio",
    "usable_blocks",
]

LEAST_FREE = 0.01
"""Share of the pool that must be logically free for the index to mean anything."""


def logically_free_blocks(kv: KvSample) -> float:
    """Return L = S + free: memory that holds no live token and nobody holds back.

    >>> logically_free_blocks(KvSample(0, 100, 50, 6, 0, 4, 30, 10, 2, 0))
    46
    """
    return kv.slack + kv.free


def usable_blocks(kv: KvSample) -> int:
    """Return U = free - R: blocks that a new request may take.

    >>> usable_blocks(KvSample(0, 100, 50, 6, 0, 4, 30, 10, 2, 0))
    38
    """
    return kv.free - kv.reserved


def fragmentation_index(kv: KvSample) -> float | None:
    """Return F = 1 - U / L = (S + R) / L.

    Of the memory that holds no live token, the share that a new request can't have. It rises
    as the pool fills even at constant waste: read it with its parts, alert on none of them
    alone.

    Returns:
        ratio in [0, 1], or None when L is under 1% of the pool.

    >>> fragmentation_index(KvSample(0, 100, 52, 6, 0, 4, 30, 8, 2, 0))  # (6 + 2) / 44
    0.18181818181818182
    """
    free = logically_free_blocks(kv)
    if free < LEAST_FREE * kv.blocks:
        return None
    return (kv.slack + kv.reserved) / free if free else None


def kv_waste(kv: KvSample) -> float | None:
    """Return S / (T + S): of the blocks of running requests, the share without a live token.

    Returns:
        ratio in [0, 1), or None when nothing runs.

    Source:
        Kwon et al., SOSP 2023, section 6.2: under 4% with paging.

    >>> kv_waste(KvSample(0, 100, 9, 3, 0, 0, 0, 88, 0, 0))
    0.25
    """
    allocated = kv.live + kv.slack
    return kv.slack / allocated if allocated else None


def eviction_exposure(kv: KvSample) -> float | None:
    """Return evictable / free: how much of the next allocation costs a cached prefix.

    >>> eviction_exposure(KvSample(0, 100, 60, 0, 0, 0, 30, 10, 0, 0))
    0.75
    """
    return kv.evictable / kv.free if kv.free else None


def free_run_ratio(census: CensusSample) -> float | None:
    """Return the longest run of adjacent free blocks / free.

    For transfer and offload, which move adjacent blocks at once. Never for scheduling: paging
    makes blocks equally good wherever they are.

    >>> free_run_ratio(CensusSample(0.0, 0, 0, 80, 20, None, {}))
    0.25
    """
    return census.free_run / census.free if census.free else None


def slack_ratio(kv: KvSample) -> float | None:
    """Return S / B."""
    return _over_pool(kv, kv.slack)


def lookahead_ratio(kv: KvSample) -> float | None:
    """Return the part of S / B that speculative tokens may use, at most."""
    return _over_pool(kv, kv.lookahead)


def reserved_ratio(kv: KvSample) -> float | None:
    """Return R / B."""
    return _over_pool(kv, kv.reserved)


def held_ratio(kv: KvSample) -> float | None:
    """Return H / B."""
    return _over_pool(kv, kv.held)


def _over_pool(kv: KvSample, blocks: float) -> float | None:
    return blocks / kv.blocks if kv.blocks else None
