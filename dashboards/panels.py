"""Panels by the question they answer: thin makers over grafanalib."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grafanalib import core

from vramscope.exporters.catalog.thresholds import THRESHOLDS

__all__ = [
    "DATASOURCE",
    "Placed",
    "Query",
    "heatmap",
    "series",
    "stat",
    "states",
    "table",
    "thresholds_of",
]

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}

# Grafana's names of units.
UNITS = {
    "blocks": "short",
    "bytes": "bytes",
    "celsius": "celsius",
    "count": "short",
    "per second": "cps",
    "ratio": "percentunit",
    "requests": "short",
    "seconds": "s",
    "tokens per second": "cps",
    "watts": "watt",
}
Placed = tuple[core.Panel, int, int]
"""A panel, its width (of 24) and its height."""
GOOD, WARNING, CRITICAL = "green", "orange", "red"


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel.

    Attributes:
        expression: PromQL.
        legend: name of its series, with ``{{label}}``.
    """

    expression: str
    legend: str = ""


def thresholds_of(name: str | None) -> list[dict[str, Any]]:
    """Return Grafana's steps for a number's threshold in the catalog; one step without."""
    if name is None:
        return [{"color": GOOD, "value": None}]
    (one,) = (threshold for threshold in THRESHOLDS if threshold.of == name)
    if one.worse == "above":
        limits = [(GOOD, None), (WARNING, one.warning), (CRITICAL, one.critical)]
    elif one.critical is None:
        limits = [(WARNING, None), (GOOD, one.warning)]
    else:
        limits = [(CRITICAL, None), (WARNING, one.critical), (GOOD, one.warning)]
    steps = [{"color": colour, "value": value} for colour, value in limits]
    return steps[:1] + [step for step in steps[1:] if step["value"] is not None]


def series(
    title: str,
    description: str,
    unit: str,
    queries: Sequence[Query],
    *,
    size: tuple[int, int] = (12, 8),
    threshold: str | None = None,
    stacked: bool = False,
    most: float | None = None,
) -> Placed:
    """Return lines over time, or areas on each other.

    Args:
        title: the question it answers.
        description: what the number is, and what to do about it.
        unit: of ``UNITS``.
        queries: what is asked.
        size: width (of 24) and height.
        threshold: the number whose threshold in the catalog is drawn.
        stacked: parts of a whole.
        most: upper end of the axis, where it is known.
    """
    panel = core.TimeSeries(
        title=title,
        description=description,
        dataSource=DATASOURCE,
        targets=_targets(queries),
        unit=UNITS[unit],
        maxDataPoints=None,
        lineWidth=1 if stacked else 2,
        fillOpacity=40 if stacked else 6,
        showPoints="never",
        stacking={"group": "A", "mode": "normal" if stacked else "none"},
        valueMin=0,
        valueMax=most,
        legendDisplayMode="table",
        legendPlacement="bottom",
        legendCalcs=["lastNotNull", "max"],
        tooltipMode="multi",
        thresholds=thresholds_of(threshold),
        thresholdsStyleMode="off" if threshold is None else "dashed",
        extraJson={"options": {"legend": {"showLegend": True}, "tooltip": {"sort": "desc"}}},
    )
    return panel, *size


def stat(
    title: str,
    description: str,
    unit: str,
    queries: Sequence[Query],
    *,
    size: tuple[int, int] = (4, 4),
    threshold: str | None = None,
    link: str | None = None,
) -> Placed:
    """Return a number, with the line of its past behind it.

    Args:
        title: the question it answers.
        description: what the number is, and what to do about it.
        unit: of ``UNITS``.
        queries: what is asked.
        size: width (of 24) and height.
        threshold: the number whose threshold in the catalog colours it.
        link: uid of the dashboard that says more; time and variables go along.
    """
    links = []
    if link is not None:
        url = f"/d/{link}?${{__url_time_range}}&${{__all_variables}}"
        links = [{"title": "more", "url": url, "targetBlank": False}]
    panel = core.Stat(
        title=title,
        description=description,
        dataSource=DATASOURCE,
        targets=_targets(queries),
        format=UNITS[unit],
        maxDataPoints=None,
        reduceCalc="lastNotNull",
        colorMode="value" if threshold is None else "background",
        graphMode="area",
        textMode="auto",
        noValue="no data",
        thresholds=thresholds_of(threshold),
        extraJson={"fieldConfig": {"defaults": {"color": {"mode": "thresholds"}, "links": links}}},
    )
    return panel, *size


def states(
    title: str,
    description: str,
    queries: Sequence[Query],
    words: Mapping[str, tuple[str, str]],
    *,
    size: tuple[int, int] = (24, 6),
) -> Placed:
    """Return bands over time: which state each thing was in.

    Args:
        title: the question it answers.
        description: what the states are, and what to do about them.
        queries: each value is a key of ``words``.
        words: by value: what it means, and its colour.
        size: width (of 24) and height.
    """
    options = {value: {"text": text, "color": colour} for value, (text, colour) in words.items()}
    panel = core.StateTimeline(
        title=title,
        description=description,
        dataSource=DATASOURCE,
        targets=_targets(queries),
        maxDataPoints=None,
        mergeValues=True,
        showValue="auto",
        legendDisplayMode="list",
        thresholds=thresholds_of(None),
        mappings=[{"type": "value", "options": options}],
        extraJson={
            "fieldConfig": {"defaults": {"color": {"mode": "thresholds"}}},
            "options": {"legend": {"showLegend": True}, "rowHeight": 0.8},
        },
    )
    return panel, *size


def heatmap(
    title: str,
    description: str,
    unit: str,
    queries: Sequence[Query],
    *,
    size: tuple[int, int] = (12, 8),
) -> Placed:
    """Return a histogram's buckets over time."""
    options = {
        "calculate": False,
        "cellGap": 1,
        "color": {
            "mode": "scheme",
            "scheme": "Oranges",
            "fill": "dark-orange",
            "scale": "exponential",
            "exponent": 0.5,
            "steps": 64,
            "reverse": False,
        },
        "exemplars": {"color": "rgba(255,0,255,0.7)"},
        "filterValues": {"le": 1e-9},
        "legend": {"show": True},
        "rowsFrame": {"layout": "auto"},
        "showValue": "never",
        "tooltip": {"mode": "single", "yHistogram": True, "showColorScale": False},
        "yAxis": {"axisPlacement": "left", "reverse": False, "unit": UNITS[unit]},
    }
    panel = core.Heatmap(
        title=title,
        description=description,
        dataSource=DATASOURCE,
        targets=_targets(queries, heat=True),
        maxDataPoints=None,
        options=options,
    )
    return panel, *size


def table(
    title: str,
    description: str,
    queries: Sequence[Query],
    *,
    columns: Mapping[str, tuple[str, str]],
    by: Sequence[str],
    size: tuple[int, int] = (24, 8),
    thresholds: Mapping[str, str] | None = None,
) -> Placed:
    """Return a row for each thing, a column for each query.

    Args:
        title: the question it answers.
        description: what the columns are.
        queries: each an instant value by the same labels; the legend names its column.
        columns: by legend: what the column is called, and its unit of ``UNITS``.
        by: labels that name a row.
        size: width (of 24) and height.
        thresholds: by legend: the number whose threshold in the catalog colours the column.
    """
    letters = [chr(ord("A") + n) for n in range(len(queries))]
    names = {
        f"Value #{letter}": columns[query.legend][0]
        for letter, query in zip(letters, queries, strict=True)
    }
    overrides = []
    for query in queries:
        name, unit = columns[query.legend]
        properties: list[dict[str, Any]] = [{"id": "unit", "value": UNITS[unit]}]
        of = (thresholds or {}).get(query.legend)
        if of is not None:
            steps = {"mode": "absolute", "steps": thresholds_of(of)}
            properties += [
                {"id": "thresholds", "value": steps},
                {"id": "custom.cellOptions", "value": {"type": "color-text"}},
            ]
        overrides.append({"matcher": {"id": "byName", "options": name}, "properties": properties})
    order = {label: n for n, label in enumerate(by)}
    order |= {f"Value #{letter}": len(by) + n for n, letter in enumerate(letters)}
    shown = {
        "excludeByName": {"Time": True},
        "indexByName": order,
        "renameByName": names,
    }
    panel = core.Table(
        title=title,
        description=description,
        dataSource=DATASOURCE,
        targets=_targets(queries, form="table"),
        maxDataPoints=None,
        transformations=[
            {"id": "merge", "options": {}},
            {"id": "organize", "options": shown},
        ],
        overrides=overrides,
    )
    return panel, *size


def _targets(queries: Sequence[Query], *, heat: bool = False, form: str = "") -> list[core.Target]:
    return [
        core.Target(
            expr=query.expression,
            legendFormat=query.legend,
            refId=chr(ord("A") + number),
            datasource=DATASOURCE,
            intervalFactor=1,
            instant=form == "table",
            format="heatmap" if heat else form or "time_series",
        )
        for number, query in enumerate(queries)
    ]
