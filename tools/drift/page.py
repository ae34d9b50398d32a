"""docs/compatibility.md, from the table and the committed result."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from found import Found, releases_with, whys
from hook_points import CAPABILITIES, HOOK_POINTS

__all__ = ["PAGE", "TESTED", "compatibility_page"]

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"

TESTED = "0.32.0"
"""The release that the tests run."""

INTRODUCTION = """\
# vLLM releases

<!-- Generated from tools/drift by `make drift`. Do not edit. -->

What vramscope's probe finds in each vLLM release, the last patch of each since {first}. It hangs on
names inside vLLM, most of them private. A name that a release lacks switches off the capability
that needs it (`vramscope_probe_capability{{feature}}` 0), not the probe.

`make drift` reads the sources of the releases from the package index (nothing of them is run) and
looks up every name that the probe hooks or reads, with the parameters it relies on: "yes" says
that they are all there. That the numbers are right is tested on a running {tested} only.
"""


def compatibility_page(found: Found) -> str:
    """Return the page."""
    introduction = INTRODUCTION.format(first=next(iter(found.missing)), tested=TESTED)
    return "\n".join((introduction, *_capabilities(found), "", *_names(found), ""))


def _capabilities(found: Found) -> Iterator[str]:
    yield from ("| capability | what it gives |", "|---|---|")
    for name, capability in CAPABILITIES.items():
        yield f"| `{name}` | {capability.gives} |"
    yield ""
    yield f"| vLLM | {' | '.join(CAPABILITIES)} |"
    yield "|---" * (len(CAPABILITIES) + 1) + "|"
    off = []
    for release, missing in found.missing.items():
        cells = []
        for name in CAPABILITIES:
            why = whys(name, missing)
            cells.append("no" if why else "yes")
            off += [f"- {release}, {name}: {'; '.join(why)}"] if why else []
        yield f"| {release} | {' | '.join(cells)} |"
    if off:
        yield from ("", "Why not:", "", *off)


def _names(found: Found) -> Iterator[str]:
    yield from ("## Names that not all of them have", "")
    yield "The probe does without an optional one; most belong to what a release lacks itself."
    yield from ("", "| name | for | optional | releases |", "|---|---|---|---|")
    releases = list(found.missing)
    for point in HOOK_POINTS:
        has = releases_with(point, found)
        if len(has) < len(releases):
            optional = "no" if point.needed else "yes"
            spans = _spans(has, releases)
            yield f"| `{point.key}` | {point.capability} | {optional} | {spans} |"


def _spans(has: Sequence[str], releases: Sequence[str]) -> str:
    """Return the releases as spans: ``0.13.0 to 0.22.1``, ``0.30.0 and later``.

    >>> _spans(["1", "2", "4"], ["1", "2", "3", "4"])
    '1 to 2, 4 and later'
    """
    spans: list[list[str]] = []
    for before, release in zip(("", *releases), releases, strict=False):
        if release in has:
            if spans and spans[-1][-1] == before:
                spans[-1].append(release)
            else:
                spans.append([release])
    texts = [
        f"{span[0]} and later"
        if span[-1] == releases[-1]
        else span[0]
        if len(span) == 1
        else f"{span[0]} to {span[-1]}"
        for span in spans
    ]
    return ", ".join(texts) or "none"
