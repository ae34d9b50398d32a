"""What an engine's block manager says beyond the state of its blocks, as frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["CensusSample", "KvGroupSample", "ReservationSample", "StaticWasteSample"]


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
