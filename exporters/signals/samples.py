"""What a source saw of one engine, as frozen values that formulas, pages and policies read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from vramscope.exporters.signals.kv_samples import (
    GrowthSample,
    KvSample,
    ReservationSample,
    StaticWasteSample,
)
from vramscope.exporters.signals.lora_samples import LoraSample
from vramscope.exporters.signals.offload_samples import OffloadSample
from vramscope.exporters.signals.request_samples import LoadSample, PreemptionSample
from vramscope.exporters.signals.vram import VramSample

__all__ = ["EngineProcess", "EngineSample", "EngineState"]


class EngineState(StrEnum):
    """What an engine is doing, by its record's lock and busy flag."""

    IDLE = "idle"
    BUSY = "busy"
    HUNG = "hung"
    """Busy, and no step for longer than max(5 s, 10 x p99 step)."""


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
