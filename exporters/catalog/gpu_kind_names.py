"""Finds a kind of GPU by what people and drivers call it."""

import difflib
import re

from vramscope.exporters.catalog.gpu_kinds import GPU_KINDS, GpuKind
from vramscope.exporters.errors import VramscopeError

__all__ = ["UnknownGpuError", "find_kind"]


class UnknownGpuError(VramscopeError):
    """No kind of GPU has this name, or several have."""


def find_kind(text: str) -> GpuKind:
    """Return the kind with a name, or with a driver's product name; case and marks don't count.

    Raises:
        UnknownGpuError: none or several; names the nearest.

    >>> find_kind("NVIDIA H100 80GB HBM3").name
    'h100-sxm'
    """
    wanted = _bare(text)
    names = {_bare(name): kind for kind in GPU_KINDS for name in (kind.name, *kind.products)}
    if wanted in names:
        return names[wanted]
    begins = [kind.name for kind in GPU_KINDS if wanted and _bare(kind.name).startswith(wanted)]
    if begins:
        raise UnknownGpuError(f"{text}: several GPUs have this name: want {' or '.join(begins)}")
    close = difflib.get_close_matches(wanted, names, n=3, cutoff=0.5)
    nearest = ", ".join(dict.fromkeys(names[name].name for name in close))
    known = nearest or ", ".join(kind.name for kind in GPU_KINDS)
    raise UnknownGpuError(f"{text}: no such GPU is known here: want {known}, or --gpu-memory 80GiB")


def _bare(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
