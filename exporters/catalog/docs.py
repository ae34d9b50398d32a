"""Writes docs/metrics.md from the catalog: ``python -m vramscope.exporters.catalog.docs``."""

import sys

from vramscope.exporters.catalog import METRICS, Metric
from vramscope.exporters.catalog.controller import CONTROLLER_METRICS
from vramscope.exporters.catalog.engine import ENGINE_METRICS
from vramscope.exporters.catalog.exporter import EXPORTER_METRICS
from vramscope.exporters.catalog.fabric import FABRIC_METRICS
from vramscope.exporters.catalog.gpu import GPU_METRICS
from vramscope.exporters.catalog.owners import OWNER_METRICS

__all__ = ["metrics_page"]

INTRODUCTION = f"""\
# Metrics

<!-- Generated from vramscope/exporters/catalog by `make docs`. Do not edit. -->

All {len(METRICS)} metrics of the suite. A missing sample means that the number is not known or
has no meaning now (a ratio whose denominator is zero); it never means 0. Ratios "since the
engine started" are for a first look: over a time window, divide the counters with `rate()`.
A label in brackets is on some series only.
"""


def metrics_page() -> str:
    """Return the page: a table a room, in the catalog's order."""
    rooms = (
        ("Engines (`vramscope export`)", ENGINE_METRICS),
        ("GPUs (`vramscope export`)", GPU_METRICS),
        ("Who uses which GPU", OWNER_METRICS),
        ("Fabric: InfiniBand, RoCE and EFA ports", FABRIC_METRICS),
        ("Exporter and its sources", EXPORTER_METRICS),
        ("Controller (`vramscope serve`)", CONTROLLER_METRICS),
    )
    return INTRODUCTION + "".join(f"\n## {title}\n\n{_table(rows)}" for title, rows in rooms)


def _table(metrics: tuple[Metric, ...]) -> str:
    head = "| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n"
    return head + "".join(
        f"| `{m.name}` | {m.kind} | {m.unit or '-'} | {_labels(m)} | {m.help} |\n" for m in metrics
    )


def _labels(metric: Metric) -> str:
    optional = (f"[{name}]" for name in metric.optional)
    return ", ".join((*metric.labels, *optional)) or "-"


if __name__ == "__main__":
    sys.stdout.write(metrics_page())
