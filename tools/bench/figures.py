"""Figures of a benchmark: medians with their A/A spread, as a table and as JSON."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

__all__ = ["Figure", "figure", "quantile", "ratio_figure", "table", "write"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One result.

    Attributes:
        name: what was measured.
        value: median over the rounds.
        unit: base unit.
        target: what it should be at most; None: for information.
        better: which way is better.
        spread: how far two halves of the same rounds lie apart, relative to the value: what a
            difference must exceed to mean something.
    """

    name: str
    value: float
    unit: str
    target: float | None
    better: str = "lower"
    spread: float = 0.0


def figure(name: str, rounds: Sequence[float], unit: str, target: float | None) -> Figure:
    """Return the median of ``rounds`` with its A/A spread: even rounds against odd ones."""
    value = median(rounds)
    spread = 0.0
    if len(rounds) > 1 and value:
        spread = abs(median(rounds[::2]) - median(rounds[1::2])) / value
    return Figure(name, value, unit, target, spread=spread)


def ratio_figure(
    name: str, rounds: Sequence[float], base: Sequence[float], target: float | None
) -> Figure:
    """Return the median of ratios, each within one round, so that drift cancels."""
    return figure(name, [a / b for a, b in zip(rounds, base, strict=True)], "ratio", target)


def quantile(values: Iterable[float], q: float) -> float:
    """Return the q-quantile, the nearest value above.

    >>> quantile([4, 1, 3, 2], 0.5)
    2
    """
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * q // 1).__int__() - 1)]


def table(figures: Iterable[Figure]) -> str:
    """Return the figures as text, those over their target marked."""
    rows = [("figure", "median", "A/A", "target", "")]
    for one in figures:
        target = "-" if one.target is None else f"{one.target:g} {one.unit}"
        over = one.target is not None and one.value > one.target
        rows.append(
            (
                one.name,
                f"{one.value:.4g} {one.unit}",
                f"{one.spread:.1%}",
                target,
                "over" if over else "",
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        + "\n"
        for row in rows
    )


def write(figures: Iterable[Figure], file: Path) -> None:
    """Write ``{"figures": [...]}``."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"figures": [asdict(one) for one in figures]}, indent=2) + "\n")
