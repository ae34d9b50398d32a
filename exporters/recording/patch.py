"""What changed from one JSON tree to the next.

A patch is JSON too: a scalar replaces what was there; ``[new]`` replaces it by a container;
``[place, patch, place, patch, ...]`` changes a list of the same length, ``{key: patch}`` an object
of the same keys; an empty list changes nothing.
"""

from collections.abc import Mapping
from typing import Any

__all__ = ["UNCHANGED", "PatchError", "apply", "difference"]

Tree = Any
UNCHANGED: list[Any] = []


class PatchError(ValueError):
    """A patch does not fit what it is to change."""


def difference(old: Tree, new: Tree) -> Tree:
    """Return the patch that makes ``new`` of ``old``.

    >>> difference([1, [2, 3], "a"], [1, [2, 4], "a"])
    [1, [1, 4]]
    """
    if isinstance(new, list):
        if not isinstance(old, list) or len(old) != len(new):
            return [new]
        places: list[Any] = []
        for place, (before, after) in enumerate(zip(old, new, strict=True)):
            if (patch := difference(before, after)) != UNCHANGED:
                places += (place, patch)
        return places
    if isinstance(new, dict):
        # In order, since the order is what a page shows.
        if not isinstance(old, dict) or list(old) != list(new):
            return [new]
        patches = {key: difference(old[key], new[key]) for key in new}
        changed = {key: patch for key, patch in patches.items() if patch != UNCHANGED}
        return changed or UNCHANGED
    return UNCHANGED if _same(old, new) else new


def apply(old: Tree, patch: Tree) -> Tree:
    """Return the tree that a patch makes of ``old``, which stays as it is.

    Raises:
        PatchError: it is of another tree.
    """
    if _is_scalar(patch):
        return patch
    if isinstance(patch, list) and len(patch) % 2:
        if len(patch) != 1:
            raise PatchError("a list of odd length")
        return patch[0]
    if not patch:
        return old
    if isinstance(patch, list):
        return _apply_to_list(old, patch)
    if not isinstance(old, Mapping) or not patch.keys() <= old.keys():
        raise PatchError("it names keys that are not there")
    return {key: apply(item, patch[key]) if key in patch else item for key, item in old.items()}


def _apply_to_list(old: Tree, patch: list[Any]) -> list[Any]:
    if not isinstance(old, list):
        raise PatchError("a list is changed where there is none")
    new = list(old)
    for place, change in zip(patch[::2], patch[1::2], strict=True):
        if not isinstance(place, int) or not 0 <= place < len(new):
            raise PatchError(f"place {place!r} of a list of {len(new)}")
        new[place] = apply(old[place], change)
    return new


def _is_scalar(tree: Tree) -> bool:
    return not isinstance(tree, list | dict)


def _same(old: Tree, new: Tree) -> bool:
    """Whether two scalars look the same on a page: 1, 1.0 and True don't, nor 0.0 and -0.0."""
    return type(old) is type(new) and old == new and (bool(new) or repr(old) == repr(new))
