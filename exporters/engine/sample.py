"""From a record's fields to a sample: what the probe wrote, under the names of the signals."""

from collections.abc import Iterable, Mapping
from typing import Any

from vramscope.exporters.engine.reader import RecordReader
from vramscope.exporters.signals.samples import (
    EngineProcess,
    EngineSample,
    EngineState,
    KvSample,
    LoraSample,
)

__all__ = ["engine_processes", "engine_sample"]

HUNG_AFTER_S = 5.0
HUNG_AFTER_STEPS = 10
REASONS = "preemptions_"
TIERS = ("gpu", "cpu", "disk")
LOAD_TIERS = ("cpu", "disk")
LOAD_BOUND = "load_cpu_le_"


def engine_sample(
    header: Mapping[str, Any],
    step: Mapping[str, float],
    state: Mapping[str, Any],
    worker: RecordReader | None,
    now: float,
    processes: tuple[EngineProcess, ...] = (),
) -> EngineSample:
    """Build the sample of one engine.

    Args:
        header: the engine record's header.
        step: its last step.
        state: its state; an ``error`` there leaves only what the engine is.
        worker: the record of rank 0's worker, if it has one.
        now: the host's monotonic clock, seconds.
        processes: as ``engine_processes`` returns them.

    Raises:
        KeyError, TypeError, ValueError: the record lacks a field or has a wrong one.
    """
    capabilities = {str(name): bool(on) for name, on in state.get("capabilities", {}).items()}
    age_s = max(0.0, now - step["time_s"])
    busy = bool(step["busy"])
    hung = age_s > max(HUNG_AFTER_S, HUNG_AFTER_STEPS * step["step_p99_s"])
    lora = None
    if worker is not None:
        worker_state = worker.state()
        capabilities |= {k: bool(v) for k, v in worker_state.get("capabilities", {}).items()}
        if capabilities.get("lora"):
            lora = _lora(worker.step(), worker_state, header)
    kv_age_s = max(0.0, now - step["scan_time_s"]) if busy else 0.0
    return EngineSample(
        engine=str(header["engine"]),
        model=str(header["model"]),
        dp_rank=int(header["dp_rank"]),
        vllm_version=str(header["vllm_version"]),
        state=(EngineState.HUNG if hung else EngineState.BUSY) if busy else EngineState.IDLE,
        age_s=age_s if busy else 0.0,
        kv=_kv(header, step, kv_age_s) if capabilities.get("blocks") else (),
        running=int(step["running"]),
        waiting=int(step["waiting"]),
        steps=int(step["steps"]),
        preemptions={
            name.removeprefix(REASONS): int(value)
            for name, value in step.items()
            if name.startswith(REASONS)
        },
        preempted_tokens=int(step["preempted_tokens"]),
        prefill_tokens=int(step["prefill_tokens"]),
        recomputed_tokens=int(step["recomputed_tokens"]),
        generated_tokens=int(step["generated_tokens"]),
        cached_tokens=int(step["cached_tokens"]),
        first_schedules=int(step["first_schedules"]),
        finished={"finished": int(step["finished"]), "aborted": int(step["aborted"])},
        capabilities=capabilities,
        lora=lora,
        ranks=int(header.get("tensor_parallel", 1)) * int(header.get("pipeline_parallel", 1)),
        processes=processes,
    )


def engine_processes(records: Iterable[RecordReader]) -> tuple[EngineProcess, ...]:
    """Return what the records of one engine say of their processes and GPUs, by rank.

    Args:
        records: the EngineCore's, then its workers' in any order.

    Raises:
        TypeError, ValueError: a header has a wrong field.
    """
    processes = [
        EngineProcess(
            pid=reader.pid(),
            first_rank=int(reader.header.get("rank", 0)),
            gpu_uuids=tuple(map(str, reader.header.get("gpu_uuids", ()))),
        )
        for reader in records
    ]
    return tuple(sorted(processes, key=lambda process: process.first_rank))


def _kv(header: Mapping[str, Any], step: Mapping[str, float], age_s: float) -> tuple[KvSample, ...]:
    samples = []
    for pool, _ in enumerate(header["pools"]):
        field = {
            name.removeprefix(f"pool{pool}_"): value
            for name, value in step.items()
            if name.startswith(f"pool{pool}_")
        }
        drift = int(field["drift"])
        samples.append(
            KvSample(
                pool=pool,
                blocks=int(field["blocks"]),
                live=field["live"],
                slack=field["slack"],
                lookahead=field["lookahead"],
                held=int(field["held"]),
                evictable=int(field["evictable"]),
                clean=int(field["clean"]),
                reserved=int(field["reserved"]),
                age_s=age_s,
                evictions=int(field["evictions"]),
                resurrections=int(field["resurrections"]),
                drift=drift if drift >= 0 else None,
                block_sizes=tuple(
                    int(group["block_size"]) for group in header["groups"] if group["pool"] == pool
                ),
            )
        )
    return tuple(samples)


def _lora(
    step: Mapping[str, float], state: Mapping[str, Any], header: Mapping[str, Any]
) -> LoraSample:
    bounds = tuple(
        float(name.removeprefix(LOAD_BOUND)) for name in step if name.startswith(LOAD_BOUND)
    )
    return LoraSample(
        requests={tier: int(step[f"requests_{tier}"]) for tier in TIERS},
        loads={tier: int(step[f"loads_{tier}"]) for tier in LOAD_TIERS},
        load_seconds={tier: step[f"load_s_{tier}"] for tier in LOAD_TIERS},
        load_bounds_s=bounds,
        load_counts={
            tier: tuple(int(step[f"load_{tier}_le_{bound}"]) for bound in bounds)
            for tier in LOAD_TIERS
        },
        resident={str(name): str(tier) for name, tier in state.get("resident", {}).items()},
        gpu_slots=int(header["gpu_slots"]),
        cpu_slots=int(header["cpu_slots"]),
    )
