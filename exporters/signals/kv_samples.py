"""What a source saw of an engine's KV memory, as frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from vramscope.exporters.signals.histogram import HistogramSample

__all__ = [
    "CensusSample",
    "GrowthSample",
    "KvGroupSample",
    "KvSample",
    "ReservationSample",
    "StaticWasteSample",
]


@dataclass(frozen=True, slots=True)
class CensusSample:
    """A pool's blocks counted one by one: an estimate where they are too many for one scan.

    Attributes:
        age_s: time since the count began; for all others, since none is younger.
        drift: blocks that the probe's running counts had wrong, and have right since.
        duplicates: cached blocks with a prefix that another block has too, beyond one of each;
            None where vLLM keeps no such list.
        free: unreferenced blocks.
        free_run: most unreferenced blocks with adjacent numbers.
        oldest_evictable_s: time since the last use of the least recently used evictable block;
            None without one.
        evictable_by_age: evictable blocks by time since their last use: by the upper bound in
            seconds of their class, ``+Inf`` for the last.
    """

    age_s: float
    drift: int
    duplicates: int | None
    free: int
    free_run: int
    oldest_evictable_s: float | None
    evictable_by_age: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class KvGroupSample:
    """Layers that share block tables.

    Attributes:
        group: index in the engine.
        kind: vLLM's name of how they keep their cache, ``FullAttentionSpec``.
        block_size: token slots of a block.
        entries: blocks in the group's tables; one that requests share counts for each.
    """

    group: int
    kind: str
    block_size: int
    entries: int


@dataclass(frozen=True, slots=True)
class ReservationSample:
    """What the scheduler keeps from new requests, and whom it refused blocks.

    Attributes:
        watermark: free blocks kept while anything runs.
        prefill: free blocks that admitted prefills will still take.
        refused: allocations that found too few free blocks, by whose they were (``waiting``,
            ``running``), since start.
        wants: blocks that the waiting request last refused would take, were nothing of it
            cached; None when none was refused since the scan before.
    """

    watermark: int
    prefill: int
    refused: Mapping[str, int]
    wants: int | None


@dataclass(frozen=True, slots=True)
class StaticWasteSample:
    """What allocators of one contiguous range a request would hold here.

    Attributes:
        tokens: of each request that holds blocks, not deduplicated.
        reserved: what two allocators would reserve for the same requests now
            (``max_model_len``, ``power_of_two``) [tokens].
        held_token_s: of requests that have left, tokens times the time they ran.
        oracle_token_s: of the same, final length times that time.
    """

    tokens: int
    reserved: Mapping[str, int]
    held_token_s: float
    oracle_token_s: float


@dataclass(frozen=True, slots=True)
class KvSample:
    """One block pool, all of it at one moment, in block equivalents.

    ``live + slack + held + evictable + clean`` is ``blocks``.

    Attributes:
        pool: the pool's index in the engine.
        blocks: usable blocks B (the null block excluded).
        live: T, the sum of fill over the distinct blocks of running requests.
        slack: S, the sum of 1 - fill over the same blocks.
        lookahead: the part of ``slack`` kept for speculative tokens, at most.
        held: H, referenced blocks of no running request.
        evictable: unreferenced blocks with a prefix hash.
        clean: unreferenced blocks without one.
        reserved: R, free blocks a new request may not take.
        age_s: time since the moment of the sample; 0 while nothing can have changed.
        evictions: cached blocks overwritten or evicted, since start.
        resurrections: cached blocks taken back into use while free, since start.
        shared: blocks with more than one reference.
        saved: references beyond the first, summed over blocks: blocks that sharing saves.
        evicted_age_s: age at eviction of blocks evicted while free, by whether they had been
            ``hit`` since they were filled or ``never_hit``.
        slack_by_length: ``slack`` by the class of its request's length: by the upper bound in
            computed tokens, ``+Inf`` for the last.
        entries_by_length: blocks in the tables of running requests, by the same classes; one
            that requests share counts for each.
        groups: KV cache groups that take their blocks from the pool.
        census: None until the first count is complete.
    """

    pool: int
    blocks: int
    live: float
    slack: float
    lookahead: float
    held: int
    evictable: int
    clean: int
    reserved: int
    age_s: float
    evictions: int = 0
    resurrections: int = 0
    shared: int = 0
    saved: int = 0
    evicted_age_s: Mapping[str, HistogramSample] = field(default_factory=dict)
    slack_by_length: Mapping[str, float] = field(default_factory=dict)
    entries_by_length: Mapping[str, int] = field(default_factory=dict)
    groups: tuple[KvGroupSample, ...] = ()
    census: CensusSample | None = None

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """Token slots of a block, by KV cache group."""
        return tuple(group.block_size for group in self.groups)

    @property
    def free(self) -> int:
        """Unreferenced blocks: evictable and clean."""
        return self.evictable + self.clean


@dataclass(frozen=True, slots=True)
class GrowthSample:
    """How fast the free blocks of one pool go. Averages look back about ten seconds.

    Attributes:
        pool: the pool's index in the engine.
        taken: blocks that left the free list, by what took them (``decode``, ``prefill``),
            since start.
        freed: blocks that came back to it, since start.
        taken_per_s: average of ``taken`` [blocks/s].
        freed_per_s: average of ``freed`` [blocks/s].
        growth_per_s: average of what U lost [blocks/s]; negative while it gains.
        variance: of what U lost, over a second [blocks^2/s].
        weight: share of the averages that is of this load; the rest is the zeros they began with.
    """

    pool: int
    taken: Mapping[str, int]
    freed: int
    taken_per_s: Mapping[str, float]
    freed_per_s: float
    growth_per_s: float
    variance: float
    weight: float
