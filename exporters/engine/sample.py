"""From a record's fields to a sample: what the probe wrote, under the names of the signals."""

from collections.abc import Iterable, Mapping, Sequence
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
from vramscope.exporters.engine.samples.offload import offload_sample
from vramscope.exporters.engine.samples.preemption import preemption_sample
from vramscope.exporters.engine.samples.vram import vram_sample
from vramscope.exporters.signals.samples import EngineProcess, EngineSample, EngineState

__all__ = ["engine_processes", "engine_sample"]

HUNG_AFTER_S = 5.0
HUNG_AFTER_STEPS = 10
REASONS = "preemptions_"


def engine_sample(
    header: Mapping[str, Any],
    fields: Mapping[str, float],
    state: Mapping[str, Any],
    workers: Sequence[RecordReader],
    now: float,
    processes: tuple[EngineProcess, ...] = (),
) -> EngineSample:
    """Build the sample of one engine.

    Args:
        header: the engine record's header.
        fields: of its last step and scan.
        state: its state; an ``error`` there leaves only what the engine is.
        workers: the records of its workers.
        now: the host's monotonic clock, seconds.
        processes: as ``engine_processes`` returns them.

    Raises:
        KeyError, TypeError, ValueError: the record lacks a field or has a wrong one.
    """
    capabilities = {str(name): bool(on) for name, on in state.get("capabilities", {}).items()}
    age_s = max(0.0, now - fields["time_s"])
    busy = bool(fields["busy"])
    hung = age_s > max(HUNG_AFTER_S, HUNG_AFTER_STEPS * fields["step_p99_s"])
    workers = sorted(workers, key=lambda worker: int(worker.header.get("rank", 0)))
    states = [worker.state() for worker in workers]
    # A feature of the workers is there if each of them has it: the counts are of one, the times
    # of all.
    for of_worker in states:
        for name, on in of_worker.get("capabilities", {}).items():
            capabilities[str(name)] = bool(on) and capabilities.get(str(name), True)
    lora = None
    if capabilities.get("lora") and workers and workers[0].header.get("rank", 0) == 0:
        rows = [worker.scan() | worker.step() for worker in workers]
        lora = lora_sample(header, fields, rows, states[0])
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
        offload=offload_sample(header, fields, capabilities),
        ranks=int(header.get("tensor_parallel", 1)) * int(header.get("pipeline_parallel", 1)),
        processes=processes,
        vram=tuple(map(vram_sample, workers)) if capabilities.get("vram") else (),
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
