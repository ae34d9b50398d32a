"""From a record's fields to a sample: what the probe wrote, under the names of the signals."""

from collections.abc import Iterable, Mapping
from typing import Any

from vramscope.exporters.engine.reader import RecordReader
from vramscope.exporters.engine.samples.growth import growth_samples
from vramscope.exporters.engine.samples.kv import (
    by_bound,
    kv_samples,
    reservation_sample,
    static_waste_sample,
)
from vramscope.exporters.engine.samples.load import load_sample
from vramscope.exporters.engine.samples.lora import lora_sample
from vramscope.exporters.engine.samples.preemption import preemption_sample
from vramscope.exporters.signals.samples import (
    EngineProcess,
    EngineSample,
    EngineState,
)

__all__ = ["engine_processes", "engine_sample"]

HUNG_AFTER_S = 5.0
HUNG_AFTER_STEPS = 10
REASONS = "preemptions_"


def engine_sample(
    header: Mapping[str, Any],
    fields: Mapping[str, float],
    state: Mapping[str, Any],
    worker: RecordReader | None,
    now: float,
    processes: tuple[EngineProcess, ...] = (),
) -> EngineSample:
    """Build the sample of one engine.

    Args:
        header: the engine record's header.
        fields: of its last step and scan.
        state: its state; an ``error`` there leaves only what the engine is.
        worker: the record of rank 0's worker, if it has one.
        now: the host's monotonic clock, seconds.
        processes: as ``engine_processes`` returns them.

    Raises:
        KeyError, TypeError, ValueError: the record lacks a field or has a wrong one.
    """
    capabilities = {str(name): bool(on) for name, on in state.get("capabilities", {}).items()}
    age_s = max(0.0, now - fields["time_s"])
    busy = bool(fields["busy"])
    hung = age_s > max(HUNG_AFTER_S, HUNG_AFTER_STEPS * fields["step_p99_s"])
    lora = None
    if worker is not None:
        worker_state = worker.state()
        capabilities |= {k: bool(v) for k, v in worker_state.get("capabilities", {}).items()}
        if capabilities.get("lora"):
            lora = lora_sample(header, worker.scan() | worker.step(), worker_state)
    kv_age_s = max(0.0, now - fields["scan_time_s"]) if busy else 0.0
    return EngineSample(
        engine=str(header["engine"]),
        model=str(header["model"]),
        dp_rank=int(header["dp_rank"]),
        vllm_version=str(header["vllm_version"]),
        state=(EngineState.HUNG if hung else EngineState.BUSY) if busy else EngineState.IDLE,
        age_s=age_s if busy else 0.0,
        kv=kv_samples(header, fields, now, kv_age_s) if capabilities.get("blocks") else (),
        requests_by_length=by_bound(fields, "length_requests"),
        reservation=reservation_sample(fields) if capabilities.get("blocks") else None,
        static_waste=static_waste_sample(fields) if capabilities.get("static_waste") else None,
        running=int(fields["running"]),
        waiting=int(fields["waiting"]),
        steps=int(fields["steps"]),
        preemptions={
            name.removeprefix(REASONS): int(value)
            for name, value in fields.items()
            if name.startswith(REASONS)
        },
        preempted_tokens=int(fields["preempted_tokens"]),
        prefill_tokens=int(fields["prefill_tokens"]),
        recomputed_tokens=int(fields["recomputed_tokens"]),
        generated_tokens=int(fields["generated_tokens"]),
        cached_tokens=int(fields["cached_tokens"]),
        first_schedules=int(fields["first_schedules"]),
        finished={"finished": int(fields["finished"]), "aborted": int(fields["aborted"])},
        capabilities=capabilities,
        growth=(growth_samples(fields, len(header["pools"])) if capabilities.get("growth") else ()),
        preemption=preemption_sample(fields),
        load=load_sample(fields),
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
