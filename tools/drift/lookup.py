"""Looks each hook point up in one source tree."""

from collections.abc import Iterable
from pathlib import Path

from classes import Members, members
from hook_points import HookPoint

__all__ = ["missing"]


def missing(points: Iterable[HookPoint], root: Path) -> dict[str, str]:
    """Return why each point that a release lacks is not there, by the point's key.

    Args:
        points: to look up.
        root: folder that holds the package ``vllm``.
    """
    found = {point.key: _why_not(point, root) for point in points}
    return {key: why for key, why in found.items() if why is not None}


def _why_not(point: HookPoint, root: Path) -> str | None:
    has = members(root, point.place.owner, point.place.files)
    if has is None:
        return f"no {point.place.owner or 'module'} in {' or '.join(point.place.files)}"
    whys = [_without(name.strip(), has) for name in point.name.split("|")]
    return None if None in whys else whys[0]


def _without(name: str, has: Members) -> str | None:
    """Return what is wrong with one spelling of a name, or None."""
    bare, call, wanted = name.rstrip(")").partition("(")
    if bare not in has:
        return "no such name"
    takes = has[bare]
    if not call:
        return None
    if takes is None:
        return "no method"
    first = tuple(wanted.split(", ")) if wanted else ()
    return None if takes[: len(first)] == first else f"its parameters are ({', '.join(takes)})"
