"""The GPU that a plan is for: a kind from the table, one of this host, or so many bytes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from vramscope.exporters.catalog.gpu_kind_names import find_kind
from vramscope.exporters.errors import VramscopeError
from vramscope.exporters.signals.gpu import GpuSample

__all__ = ["Target", "TargetError", "found_target", "kind_target", "size_target"]

UNITS = {"": 1, "GIB": 1024**3, "GB": 10**9, "MIB": 1024**2, "MB": 10**6}
SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


class TargetError(VramscopeError):
    """There is no GPU to plan for."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is planned for.

    Attributes:
        name: for people.
        total_bytes: as the driver says; of a kind whose driver's number is not known, the data
            sheet's.
        free_bytes: now, of a GPU that was found; None of a kind.
        bandwidth_bytes_per_s: of its memory; None where that is not known.
        source: where ``total_bytes`` is from.
    """

    name: str
    total_bytes: int
    free_bytes: int | None = None
    bandwidth_bytes_per_s: float | None = None
    source: str = ""


def kind_target(text: str) -> Target:
    """Return the target for a kind of GPU.

    Raises:
        VramscopeError: no such kind, or several.
    """
    kind = find_kind(text)
    usable = kind.usable_bytes
    return Target(
        kind.name,
        kind.memory_bytes if usable is None else usable,
        bandwidth_bytes_per_s=kind.memory_bytes_per_s,
        source="the data sheet" if usable is None else "what its driver reports",
    )


def size_target(text: str) -> Target:
    """Return the target for a size, such as ``80GiB``.

    Raises:
        TargetError: it is no size.
    """
    match = SIZE.fullmatch(text)
    unit = UNITS.get(match[2].upper()) if match else None
    size = int(float(match[1]) * unit) if match and unit else 0
    if not 2**20 <= size <= 2**50:
        raise TargetError(f"{text!r}: want a GPU's memory, such as 80GiB or 24GB")
    return Target(text, size, source="given")


def found_target(gpus: Sequence[GpuSample], index: int | None) -> Target:
    """Return a GPU of this host: the one with an index, or the one with the least memory.

    Args:
        gpus: as a source reads them.
        index: of the GPU.

    Raises:
        TargetError: there is none such.
    """
    sized = [gpu for gpu in gpus if "total" in gpu.memory_bytes]
    chosen = [gpu for gpu in sized if index is None or gpu.gpu.index == index]
    if not chosen:
        found = ", ".join(str(gpu.gpu.index) for gpu in sized) or "none"
        what = "GPU" if index is None else f"GPU {index}"
        raise TargetError(
            f"no {what} on this host (found: {found}): want --gpu KIND, such as --gpu h100-sxm"
        )
    sample = min(chosen, key=lambda one: one.memory_bytes["total"])
    memory = sample.memory_bytes
    return Target(
        f"GPU {sample.gpu.index}, {sample.gpu.name or sample.gpu.uuid}",
        int(memory["total"]),
        free_bytes=int(memory["free"]) if "free" in memory else None,
        source="its driver",
    )
