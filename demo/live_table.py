"""The live view's table: a row an engine, columns that fit a terminal of 100."""

from collections.abc import Callable
from typing import NamedTuple

from vramscope.demo.signals import EngineView

__all__ = ["header", "percent", "ratio", "row"]


class Column(NamedTuple):
    """A column of the table."""

    title: str
    width: int
    cell: Callable[[EngineView], str]
    group: str = ""
    """Title above this column and those that follow it."""


def percent(value: float | None) -> str:
    """Return a ratio for reading, or a dash where it has no meaning.

    >>> percent(0.123), percent(None)
    ('12%', '-')
    """
    return "-" if value is None else f"{value:.0%}"


def ratio(value: float | None) -> str:
    """Return a ratio with two digits, or a dash where it has no meaning.

    >>> ratio(0.123), ratio(None)
    ('0.12', '-')
    """
    return "-" if value is None else f"{value:.2f}"


def pool(part: str) -> Callable[[EngineView], str]:
    """Return a cell of what a part of the block pool is of the whole."""
    return lambda view: percent(view.pool[part] if view.pool else None)


COLUMNS = (
    Column("run", 5, lambda view: str(view.running), "requests"),
    Column("wait", 5, lambda view: str(view.waiting)),
    Column("live", 7, pool("live"), "KV blocks"),
    Column("slack", 6, pool("slack")),
    Column("held", 5, pool("held")),
    Column("cached", 7, pool("evictable")),
    Column("clean", 6, pool("clean")),
    Column("frag", 6, lambda view: ratio(view.fragmentation)),
    Column("waste", 6, lambda view: percent(view.waste)),
    Column("gpu", 7, lambda view: str(view.lora_requests["gpu"]), "LoRA hits"),
    Column("cpu", 4, lambda view: str(view.lora_requests["cpu"])),
    Column("disk", 5, lambda view: str(view.lora_requests["disk"])),
    Column("count", 7, lambda view: str(view.preemptions), "preempted"),
    Column("lost", 6, lambda view: str(view.lost_tokens)),
)


def header() -> str:
    """Return the lines above the rows: groups, then titles."""
    groups = ""
    at = len(_lead("", "", ""))
    for column in COLUMNS:
        if column.group:
            groups = f"{groups:<{at + column.width - len(column.title)}}{column.group}"
        at += column.width
    titles = "".join(f"{column.title:>{column.width}}" for column in COLUMNS)
    return f"\n{groups}\n{_lead('s', 'engine', 'tok/s')}{titles}"


def row(elapsed_s: float, engine: EngineView, earlier: EngineView, period_s: float) -> str:
    """Return an engine's line.

    Args:
        elapsed_s: since the load began.
        engine: as it is now.
        earlier: as it was ``period_s`` ago.
        period_s: what the rate is over.
    """
    rate = (engine.generated_tokens - earlier.generated_tokens) / period_s
    cells = "".join(f"{column.cell(engine):>{column.width}}" for column in COLUMNS)
    return _lead(f"{elapsed_s:.0f}", engine.engine, f"{rate:.0f}") + cells


def _lead(elapsed: str, engine: str, rate: str) -> str:
    return f"{elapsed:>4}  {engine:<6.6}{rate:>6}"
