"""What a source saw, as frozen values: made by sources, read by formulas, pages, policies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from vramscope.exporters.signals.kv_samples import (
    CensusSample,
    KvGroupSample,
    ReservationSample,
    StaticWasteSample,
)
from vramscope.exporters.signals.vram import VramSample

__all__ = [
    "AdapterSample",
    "EngineProcess",
    "EngineSample",
    "EngineState",
    "GrowthSample",
    "HistogramSample",
    "KvSample",
    "LoadSample",
    "LoraSample",
    "OffloadSample",
    "OffloadTier",
    "PreemptionSample",
    "SlotWaitSample",
]


class EngineState(StrEnum):
    """What an engine is doing, by its record's lock and busy flag."""

    IDLE = "idle"
    BUSY = "busy"
    HUNG = "hung"
    """Busy, and no step for longer than max(5 s, 10 x p99 step)."""


@dataclass(frozen=True, slots=True)
class HistogramSample:
    """Observations since start.

    Attributes:
        counts: by upper bound, ascending; each observation is in the first bound not below it.
        total: all observations, those over the last bound included.
        summed: their sum.
    """

    counts: Mapping[float, int]
    total: int
    summed: float


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


@dataclass(frozen=True, slots=True)
class PreemptionSample:
    """Preemptions of one engine, beyond their counts by reason. Counters since start.

    Attributes:
        victims: requests preempted at least once.
        repeats: preemptions of a request that had been preempted before.
        rehit_tokens: of the tokens lost, those found in the prefix cache at resumption.
        abandoned_tokens: of the tokens lost, those whose request left before they were there again.
        resumed: preempted requests that ran again, once a time.
        left: requests that left between preemption and resumption.
        waiting: preempted requests that have not run again yet.
        most: preemptions of the live request that had the most.
        resumption_s: time from preemption to resumption.
        victim_age_s: time from first schedule to preemption.
    """

    victims: int
    repeats: int
    rehit_tokens: int
    abandoned_tokens: int
    resumed: int
    left: int
    waiting: int
    most: int
    resumption_s: HistogramSample
    victim_age_s: HistogramSample


@dataclass(frozen=True, slots=True)
class LoadSample:
    """What an engine's steps compute, and what waits for them. Counters since start.

    Attributes:
        step_s: time of a step.
        queue_s: time from queued to first scheduled.
        requests: requests of the completed steps, summed over steps.
        decode_tokens: tokens computed that were no prefill.
        batch_requests: requests of the last step.
        batch_tokens: tokens of the last step.
        waiting: requests in the queue by what keeps them there; sums to ``waiting`` of the scan.
        oldest_wait_s: time the oldest request never scheduled has waited; None without one.
    """

    step_s: HistogramSample
    queue_s: HistogramSample
    requests: int
    decode_tokens: int
    batch_requests: int
    batch_tokens: int
    waiting: Mapping[str, int]
    oldest_wait_s: float | None


@dataclass(frozen=True, slots=True)
class AdapterSample:
    """One adapter, since it has had counters of its own; or all that have none.

    Attributes:
        requests: by tier at first schedule.
        loads: into GPU memory, by the tier they came from.
        load_seconds: time they took on rank 0, by the same tier.
        evictions: by the tier it left to make room.
        bytes: of its weights in CPU memory; None when it is not in memory.
        rank: LoRA rank; None when it is not in memory.
    """

    requests: Mapping[str, int]
    loads: Mapping[str, int]
    load_seconds: Mapping[str, float]
    evictions: Mapping[str, int]
    bytes: int | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class SlotWaitSample:
    """Requests that waited because other adapters used all slots.

    Attributes:
        requests: how many, once each, since start.
        seconds: from when they were first held to when they were scheduled or left, since start.
        waiting: how many wait for that now.
    """

    requests: int
    seconds: float
    waiting: int


@dataclass(frozen=True, slots=True)
class LoraSample:
    """Adapters of one engine: counts of rank 0, times of the slowest rank.

    A load's duration is counted in the first of ``load_bounds_s`` that is not below it.

    Attributes:
        requests: requests with an adapter by tier at first schedule, since start.
        loads: loads into GPU memory by the tier they came from, since start.
        load_seconds: time they took, by the same tier.
        load_bounds_s: upper bounds of ``load_counts``; what took longer is in ``loads`` only.
        load_counts: loads by bound, by the same tier.
        resident: tier (``gpu``, ``cpu``) by adapter name, zombies left out.
        gpu_slots: adapters that fit into GPU memory (``max_loras``).
        cpu_slots: adapters that fit into CPU memory (``max_cpu_loras``).
        evictions: adapters that left a tier to make room, since start.
        slots_used: adapters in a tier now.
        zombies: of those, the ones whose name means another by now and that no request uses.
        slot_waits: None when the scheduler does not tell.
        adapters: by name, for those with the most traffic, and ``other``.
    """

    requests: Mapping[str, int]
    loads: Mapping[str, int]
    load_seconds: Mapping[str, float]
    load_bounds_s: tuple[float, ...]
    load_counts: Mapping[str, tuple[int, ...]]
    resident: Mapping[str, str]
    gpu_slots: int
    cpu_slots: int
    evictions: Mapping[str, int] = field(default_factory=dict)
    slots_used: Mapping[str, int] = field(default_factory=dict)
    zombies: Mapping[str, int] = field(default_factory=dict)
    slot_waits: SlotWaitSample | None = None
    adapters: Mapping[str, AdapterSample] = field(default_factory=dict)


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


@dataclass(frozen=True, slots=True)
class EngineProcess:
    """One process of an engine that has a record: its EngineCore, or a worker.

    Attributes:
        pid: as the reader of the record sees it; None from another pid namespace.
        first_rank: rank of the first of ``gpu_uuids``.
        gpu_uuids: of the GPUs it works on, by rank; empty where it does not know.
    """

    pid: int | None
    first_rank: int = 0
    gpu_uuids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineSample:
    """One data-parallel rank of one vLLM engine.

    Attributes:
        engine: stable id (``VRAMSCOPE_ENGINE``, else made from model and instance).
        model: the name it is served under.
        dp_rank: data-parallel rank.
        vllm_version: version of the engine.
        state: idle, busy or hung.
        age_s: time since the last step while busy; 0 when idle.
        kv: one sample a block pool; empty until the first scan.
        requests_by_length: running requests by class of computed tokens, as in ``KvSample``.
        reservation: None from an engine without the probe.
        static_waste: None from an engine without the probe.
        running: requests in the running batch.
        waiting: requests queued.
        steps: scheduler steps since start.
        preemptions: by reason, since start.
        preempted_tokens: computed tokens thrown away, since start.
        prefill_tokens: prefill tokens computed, since start.
        recomputed_tokens: those below an earlier high-water mark, since start.
        generated_tokens: tokens generated, since start.
        cached_tokens: prompt tokens found in the prefix cache at first schedule, since start.
        first_schedules: requests scheduled for the first time, since start.
        finished: requests that left, by how (``finished``, ``aborted``), since start.
        capabilities: what the probe could attach.
        growth: one sample a block pool.
        preemption: None from an engine without the probe.
        load: None from an engine without the probe.
        lora: None when the engine has no LoRA or its worker has no record.
        offload: None without a KV connector.
        ranks: processes that hold a share of the model: tensor times pipeline parallel.
        processes: the EngineCore, then its workers on this host.
        vram: device memory of each worker on this host, by rank.
    """

    engine: str
    model: str
    dp_rank: int
    vllm_version: str
    state: EngineState
    age_s: float
    kv: tuple[KvSample, ...]
    running: int
    waiting: int
    steps: int
    preemptions: Mapping[str, int]
    preempted_tokens: int
    prefill_tokens: int
    recomputed_tokens: int
    generated_tokens: int
    cached_tokens: int
    first_schedules: int
    finished: Mapping[str, int]
    capabilities: Mapping[str, bool] = field(default_factory=dict)
    requests_by_length: Mapping[str, int] = field(default_factory=dict)
    reservation: ReservationSample | None = None
    static_waste: StaticWasteSample | None = None
    growth: tuple[GrowthSample, ...] = ()
    preemption: PreemptionSample | None = None
    load: LoadSample | None = None
    lora: LoraSample | None = None
    offload: OffloadSample | None = None
    ranks: int = 1
    processes: tuple[EngineProcess, ...] = ()
    vram: tuple[VramSample, ...] = ()

    @property
    def gpu_uuids(self) -> dict[int, str]:
        """GPU UUIDs by rank, as far as the engine's own processes know them."""
        return {
            process.first_rank + place: uuid
            for process in self.processes
            for place, uuid in enumerate(process.gpu_uuids)
        }
