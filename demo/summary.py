"""What the demo says at its end: a column an engine, and what the clients saw."""

from collections.abc import Callable, Sequence
from statistics import fmean, median, quantiles

from vramscope.demo.live_table import percent, ratio
from vramscope.demo.load import FAILED, REFUSED, Report
from vramscope.demo.signals import EngineView
from vramscope.demo.watch import History

__all__ = ["shortcomings", "summary"]

LABEL_WIDTH = 42
COLUMN_WIDTH = 18

Cell = Callable[[Sequence[EngineView]], str]
"""Makes a cell of an engine's views, oldest first."""


def summary(history: History, report: Report, seconds: float) -> list[str]:
    """Return the lines of the summary.

    Args:
        history: of every engine, from the exporter.
        report: of the load.
        seconds: the load ran.
    """
    engines = list(history.views)
    lines = [
        "",
        f"{f'summary of {seconds:.0f} s':<{LABEL_WIDTH}}"
        + "".join(f"{f'engine {engine}':>{COLUMN_WIDTH}}" for engine in engines),
    ]
    for label, cell in ROWS:
        cells = "".join(f"{cell(history.views[engine]):>{COLUMN_WIDTH}}" for engine in engines)
        lines.append(f"  {label:<{LABEL_WIDTH - 2}}{cells}")
    lines += ["", *clients(report, seconds)]
    if history.misses:
        lines.append(f"readings that the exporter did not answer: {history.misses}")
    return lines


def clients(report: Report, seconds: float) -> list[str]:
    """Return what the clients saw, in lines."""
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in report.outcomes.most_common())
    rate = report.completion_tokens / seconds
    tokens = f"{report.prompt_tokens:,} in, {report.completion_tokens:,} out ({rate:,.0f} a second)"
    lines = [f"requests: {outcomes or 'none'}", f"tokens of the completed ones: {tokens}"]
    if len(report.ttft_s) > 1:
        p95_s = quantiles(report.ttft_s, n=20)[-1]
        lines.append(
            f"time to first token: median {median(report.ttft_s):.2f} s, p95 {p95_s:.2f} s"
        )
    lines += [f"  {count} x {problem}" for problem, count in report.errors.most_common(5)]
    return lines


def shortcomings(history: History, report: Report, engines: Sequence[str]) -> list[str]:
    """Return what the demo was to show and did not, one line each; nothing when all is well."""
    last = {engine: views[-1] for engine, views in history.views.items()}
    lines = [
        f"engine {engine}: not there at the end: see its log"
        for engine in engines
        if engine not in history.present
    ]
    if failed := report.outcomes[FAILED] + report.outcomes[REFUSED]:
        lines.append(f"{failed} requests failed or were refused: want none")
    if not sum(view.preemptions for view in last.values()):
        lines.append("no preemption happened: want KV pressure")
    # Requests, not loads: each adapter is loaded once from disk before the first request.
    if not sum(view.lora_requests["disk"] for view in last.values()):
        lines.append("no request met a cold adapter: want one at least")
    return lines


def now(cell: Callable[[EngineView], str]) -> Cell:
    """Return a cell of the last view: counters run from the engine's start."""
    return lambda views: cell(views[-1])


def spread(value: Callable[[EngineView], float | None], show: Callable[[float], str]) -> Cell:
    """Return a cell of the mean and the largest value over the views of a working engine."""

    def cell(views: Sequence[EngineView]) -> str:
        values = [v for view in views if view.running and (v := value(view)) is not None]
        return f"{show(fmean(values))} ({show(max(values))})" if values else "-"

    return cell


def part(name: str) -> Callable[[EngineView], float | None]:
    """Return a reader of a part of the pool."""
    return lambda view: view.pool[name] if view.pool else None


def tax(view: EngineView) -> str:
    """Return recomputed over prefill tokens."""
    return percent(view.recomputed_tokens / view.prefill_tokens if view.prefill_tokens else None)


def tiers(counts: Callable[[EngineView], dict[str, int]]) -> Cell:
    """Return a cell of counts by tier."""
    return now(lambda view: " / ".join(str(count) for count in counts(view).values()))


ROWS: tuple[tuple[str, Cell], ...] = (
    ("tokens served", now(lambda v: f"{v.generated_tokens:,}")),
    (
        "prefill tokens computed (found cached)",
        now(lambda v: f"{v.prefill_tokens:,} ({v.cached_tokens:,})"),
    ),
    ("KV fragmentation index F, mean (highest)", spread(lambda v: v.fragmentation, ratio)),
    ("  slack S over the pool", spread(part("slack"), lambda r: f"{r:.1%}")),
    ("  reserved R over the pool", spread(part("reserved"), lambda r: f"{r:.1%}")),
    ("  held H over the pool", spread(part("held"), lambda r: f"{r:.1%}")),
    ("KV waste S / (T + S)", spread(lambda v: v.waste, lambda r: f"{r:.1%}")),
    ("LoRA requests gpu / cpu / disk", tiers(lambda v: dict(v.lora_requests))),
    ("LoRA loads from cpu / disk", tiers(lambda v: dict(v.lora_loads))),
    ("preemptions", now(lambda v: f"{v.preemptions:,}")),
    ("  tokens lost to them", now(lambda v: f"{v.lost_tokens:,}")),
    ("recompute tax", now(tax)),
)
