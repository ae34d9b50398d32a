"""Where one GPU's memory went, for one worker of an engine: parts that sum to the device's total.

The engine knows what it put there (weights, KV pool, ...), the GPU how much is taken and by
whom. Joined, what neither explains is a number of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from vramscope.exporters.signals.gpu import GpuSample

__all__ = ["DEVICE_PARTS", "ENGINE_PARTS", "VramSample", "device_parts", "engine_parts"]

ENGINE_PARTS = ("weights", "kv_pool", "lora_slots", "activations", "graphs", "encoder_cache")
DEVICE_PARTS = ("context", "other_processes", "free", "unexplained")


@dataclass(frozen=True, slots=True)
class VramSample:
    """What one worker knows of its device's memory; what it does not know is None or absent.

    Attributes:
        rank: of the worker, over tensor and pipeline parallelism.
        pid: as the reader of its record sees it; None from another pid namespace.
        gpu_uuid: of its GPU or MIG instance; empty on a CPU.
        bytes: by source: ``weights``, ``kv_pool``, ``lora_slots``, ``encoder_cache``, ``graphs``
            and ``activation_peak`` (most that a step needs beside them, an encoder cache
            included).
        allocator_bytes: what PyTorch's allocator holds of the device.
        graphs_allocator_bytes: the share of ``graphs`` that is in ``allocator_bytes``.
        asleep: vLLM's sleep mode has taken weights or KV pool off the device.
    """

    rank: int
    pid: int | None = None
    gpu_uuid: str = ""
    bytes: Mapping[str, float] = field(default_factory=dict)
    allocator_bytes: float | None = None
    graphs_allocator_bytes: float = 0.0
    asleep: bool = False


def engine_parts(vram: VramSample) -> dict[str, float]:
    """Return bytes by the parts that an engine knows.

    vLLM finds its activation peak with a full encoder cache in place, so what the cache holds
    now is taken from the peak and shown as itself.

    Returns:
        bytes by name of ``ENGINE_PARTS``; none while the engine sleeps: what it took may be away.

    >>> engine_parts(VramSample(0, bytes={"weights": 8, "activation_peak": 3, "encoder_cache": 1}))
    {'weights': 8, 'activations': 2, 'encoder_cache': 1}
    """
    if vram.asleep:
        return {}
    parts = dict(vram.bytes)
    peak = parts.pop("activation_peak", None)
    if peak is not None:
        parts["activations"] = max(0, peak - parts.get("encoder_cache", 0))
    return {name: parts[name] for name in ENGINE_PARTS if name in parts}


def device_parts(vram: VramSample, gpu: GpuSample) -> dict[str, float]:
    """Return bytes by the parts that take the device to know.

    ``context`` is what this worker's process has beyond PyTorch's allocator and the graphs: the
    CUDA context, communication buffers, libraries' workspaces; and what the driver keeps for
    itself. ``unexplained`` is the total minus all other parts. Above zero it is memory that is
    taken and that nobody accounts for (holes in the allocator, a leak, and ``context`` where the
    GPU does not list this process). Below zero it is memory set aside and not taken yet: the
    activation peak of an engine that has had no full batch.

    Args:
        vram: of a worker on this device.
        gpu: its device, read at about the same time.

    Returns:
        bytes by name of ``DEVICE_PARTS``; a part that can't be known is absent, and in
        ``unexplained``; empty where the device's total is not known, or the engine sleeps.

    >>> from vramscope.exporters.signals.gpu import GpuIdentity, GpuProcess
    >>> gpu = GpuSample(
    ...     GpuIdentity(0, "GPU-a"),
    ...     read_at_s=0,
    ...     memory_bytes={"total": 80, "free": 10, "used": 69, "reserved": 1},
    ...     processes=(GpuProcess(7, 64), GpuProcess(8, 5)),
    ... )
    >>> vram = VramSample(0, 7, "GPU-a", {"weights": 20, "kv_pool": 38}, allocator_bytes=61)
    >>> device_parts(vram, gpu)  # context 64 - 61 + 1; the allocator's 61 hold 58 that are known
    {'context': 4, 'other_processes': 5, 'free': 10, 'unexplained': 3}
    """
    memory = gpu.memory_bytes
    if vram.asleep or "total" not in memory or "free" not in memory:
        return {}
    parts: dict[str, float] = {}
    used = {process.pid: process.used_bytes for process in gpu.processes}
    if vram.pid in used:
        inside = _in_allocator_and_graphs(vram)
        if inside is not None:
            parts["context"] = max(0, used[vram.pid] - inside) + memory.get("reserved", 0)
        parts["other_processes"] = sum(used.values()) - used[vram.pid]
    parts["free"] = memory["free"]
    known = sum(parts.values()) + sum(engine_parts(vram).values())
    parts["unexplained"] = memory["total"] - known
    return parts


def _in_allocator_and_graphs(vram: VramSample) -> float | None:
    """Return what of a process's memory is in PyTorch's allocator or in graphs outside it.

    None where that is not known: an allocator of vLLM's own (sleep mode) holds weights and KV
    pool then, and PyTorch's does not count them.
    """
    placed = sum(vram.bytes.get(name, 0) for name in ("weights", "kv_pool", "lora_slots"))
    if vram.allocator_bytes is None or vram.allocator_bytes < placed:
        return None
    return vram.allocator_bytes + vram.bytes.get("graphs", 0) - vram.graphs_allocator_bytes
