"""Which GPUs an engine runs on: what joins the engines' series to the GPUs'."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from vramscope.exporters.signals.gpu import GpuIdentity, GpuSample
from vramscope.exporters.signals.samples import EngineSample

__all__ = ["EngineGpu", "engine_gpus", "parent_pid"]


class EngineGpu(NamedTuple):
    """One GPU or MIG instance of one engine."""

    engine: str
    dp_rank: int
    uuid: str
    rank: int | None
    """Of the worker on it, over tensor and pipeline parallelism; None when not known."""


def parent_pid(pid: int, proc: Path = Path("/proc")) -> int | None:
    """Return a process's parent; None when it is gone or in another pid namespace."""
    try:
        stat = (proc / str(pid) / "stat").read_bytes()
        return int(stat.rpartition(b")")[2].split()[1])  # the name before it may hold anything
    except (OSError, IndexError, ValueError):
        return None


def engine_gpus(
    engines: Iterable[EngineSample],
    gpus: Iterable[GpuSample],
    parent_of: Callable[[int], int | None] = parent_pid,
) -> list[EngineGpu]:
    """Return the GPUs of each engine, by engine and rank.

    An engine's processes name their GPUs in their records. For ranks of which no record does
    (workers write one for LoRA only), the GPU's own list of processes tells: one that is the
    engine's, or a child of its EngineCore, which is how vLLM starts workers. That needs both
    seen from the same pid namespace: on the host, or with ``hostPID``.

    Args:
        engines: of this host.
        gpus: of this host.
        parent_of: a process's parent, by pid.
    """
    by_pid: dict[int, list[GpuIdentity]] = {}
    for gpu in gpus:
        for process in gpu.processes:
            by_pid.setdefault(process.pid, []).append(gpu.gpu)
    uuids = {pid: _without_parents(used) for pid, used in by_pid.items()}
    parents = {pid: parent_of(pid) for pid in by_pid}
    return [row for engine in engines for row in _of_engine(engine, uuids, parents)]


def _without_parents(used: list[GpuIdentity]) -> list[str]:
    """Return UUIDs; a process on a MIG instance is listed by its GPU too, and is not on that."""
    parents = {gpu.parent_uuid for gpu in used}
    return [gpu.uuid for gpu in used if gpu.uuid not in parents]


def _of_engine(
    engine: EngineSample, uuids_of: dict[int, list[str]], parents: dict[int, int | None]
) -> Iterator[EngineGpu]:
    named = engine.gpu_uuids
    for rank, uuid in sorted(named.items()):
        yield EngineGpu(engine.engine, engine.dp_rank, uuid, rank)
    if len(named) >= engine.ranks:
        return
    pids = {process.pid for process in engine.processes if process.pid is not None}
    seen = set(named.values())
    for pid, uuids in sorted(uuids_of.items()):
        if pid in pids or parents[pid] in pids:
            for uuid in uuids:
                if uuid not in seen:
                    seen.add(uuid)
                    only = 0 if engine.ranks == 1 else None
                    yield EngineGpu(engine.engine, engine.dp_rank, uuid, only)
