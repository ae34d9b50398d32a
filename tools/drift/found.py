"""What was found in which release: the committed result, and what follows from it."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from hook_points import CAPABILITIES, HOOK_POINTS, HookPoint

__all__ = ["FOUND", "Found", "lost", "read", "releases_with", "whys", "write"]

FOUND = Path(__file__).parent / "found.json"


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a run.

    Attributes:
        points: keys of the points that were looked up.
        missing: by release, oldest first: why each point that it lacks is not there, by key.
    """

    points: tuple[str, ...]
    missing: Mapping[str, Mapping[str, str]]


def read(file: Path = FOUND) -> Found:
    """Return the committed result."""
    content = json.loads(file.read_text())
    return Found(tuple(content["points"]), content["missing"])


def write(found: Found, file: Path = FOUND) -> None:
    """Replace the committed result."""
    content = {"points": found.points, "missing": found.missing}
    file.write_text(json.dumps(content, indent=1) + "\n")


def whys(
    capability: str, missing: Mapping[str, str], points: Iterable[HookPoint] = HOOK_POINTS
) -> list[str]:
    """Return why a release lacks a capability; empty when it has it.

    Args:
        capability: which.
        missing: of that release, as in ``Found``.
        points: the table.
    """
    own = [
        f"`{point.key}`: {missing[point.key]}"
        for point in points
        if point.capability == capability and point.needed and point.key in missing
    ]
    bases = CAPABILITIES[capability].built_on
    return own + [f"built on {base}" for base in bases if whys(base, missing, points)]


def lost(found: Found) -> Iterator[str]:
    """Yield each capability that a release lacks and the one before it has, with the reason."""
    releases = list(found.missing.items())
    for (_, before), (release, after) in pairwise(releases):
        for capability in CAPABILITIES:
            if (why := whys(capability, after)) and not whys(capability, before):
                yield f"vLLM {release}: {capability}: {'; '.join(why)}"


def releases_with(point: HookPoint, found: Found) -> Sequence[str]:
    """Return the releases that have a point."""
    return [release for release, missing in found.missing.items() if point.key not in missing]
