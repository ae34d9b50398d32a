"""What a source saw of KV cache outside the GPU, as frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["OffloadSample", "OffloadTier"]


@dataclass(frozen=True, slots=True)
class OffloadTier:
    """The tier next to the GPU, in its own blocks; each may hold several of the GPU's.

    ``cached + pinned + clean`` is ``blocks``. Counters since start.

    Attributes:
        blocks: what it has room for.
        cached: blocks that hold KV and can be evicted.
        pinned: blocks that transfers hold.
        stored: blocks whose store is complete.
        loaded: blocks whose load is complete.
        evicted: cached blocks that made room for others.
        refused: stores, of one block or many, for which nothing could be evicted.
    """

    blocks: int
    cached: int
    pinned: int
    stored: int = 0
    loaded: int = 0
    evicted: int = 0
    refused: int = 0

    @property
    def clean(self) -> int:
        """Blocks that hold nothing."""
        return self.blocks - self.cached - self.pinned


@dataclass(frozen=True, slots=True)
class OffloadSample:
    """KV cache outside the GPU, as the scheduler's connector sees it; counters since start.

    Attributes:
        connector: its name in the engine's configuration.
        queried_tokens: prompt tokens not in GPU memory, looked up at first schedule.
        hit_tokens: those found and taken, by where (``host``, ``disk``, ``p2p``, each once it was
            named; ``unspecified``).
        moved_bytes: by direction (``store``, ``load``), all workers together; empty where the
            connector keeps no statistics.
        moved_seconds: time of those transfers, summed over transfers and workers.
        tier: None for connectors whose tier is not vLLM's own.
    """

    connector: str
    queried_tokens: int
    hit_tokens: Mapping[str, int]
    moved_bytes: Mapping[str, int]
    moved_seconds: Mapping[str, float]
    tier: OffloadTier | None = None
