"""Finds a kind of GPU by what people and drivers call it."""

import difflib
import re

from vramscope.exporters.catalog.gpu_kind import GpuKind
from vramscope.exporters.catalog.gpu_kinds import GPU_KINDS
from vramscope.exporters.errors import VramscopeError

__all__ = ["UnknownGpuError", "find_kind"]


class UnknownGpuError(VramscopeError):
    """No kind of GPU has this name, or several have."""


def find_kind(text: str) -> GpuKind:
    """Return the kind that a text names; case and punctuation don't count.

    A text names a kind that has it as a name, alias or driver's product name, or else the only
    kind all of whose names together hold each of its words.

    Raises:
        UnknownGpuError: none or several; names the nearest.

    >>> find_kind("NVIDIA H100 80GB HBM3").name, find_kind("A100 SXM 80").name
    ('h100-sxm', 'a100-80-sxm')
    """
    wanted, words = _bare(text), set(_words(text))
    names = {_bare(name): kind for kind in GPU_KINDS for name in kind.names}
    if wanted in names:
        return names[wanted]
    having = [kind for kind in GPU_KINDS if words and words <= set(_words(" ".join(kind.names)))]
    if len(having) == 1:
        return having[0]
    if having:
        several = " or ".join(kind.name for kind in having)
        raise UnknownGpuError(f"{text}: several GPUs have this name: want {several}")
    close = difflib.get_close_matches(wanted, names, n=3, cutoff=0.5)
    nearest = ", ".join(dict.fromkeys(names[name].name for name in close))
    known = nearest or ", ".join(kind.name for kind in GPU_KINDS)
    raise UnknownGpuError(f"{text}: no such GPU is known here: want {known}, or --gpu-memory 80GiB")


def _bare(text: str) -> str:
    return "".join(_words(text))


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())
