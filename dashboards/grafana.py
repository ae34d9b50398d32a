"""From grafanalib's objects to JSON that Grafana 11 to 13 reads as it is meant.

grafanalib writes what Grafana 5 to 8 read: keys that later ones ignore or trip over, and defaults
such as "none" for no value. Each of those is taken out or put right here, once.
"""

import json
from collections.abc import Sequence
from typing import Any

from grafanalib import core
from grafanalib._gen import DashboardEncoder

from vramscope.dashboards.panels import DATASOURCE, Placed

__all__ = ["Row", "dashboard"]

SCHEMA = 42
"""Of dashboards; some builds of Grafana 12 read nothing newer, later ones migrate it."""
COLUMNS = 24
TAG = "vramscope"

Row = tuple[str, Sequence[Placed]]
"""A heading, and the panels under it."""

OF_A_DASHBOARD = ("__inputs", "gnetId", "hideControls", "id", "rows", "sharedCrosshair", "style")
OF_A_PANEL = (
    *("cacheTimeout", "cards", "color", "columns", "dataFormat", "editable", "error", "fontSize"),
    *("heatmap", "height", "hideTimeOverride", "hideZeroBuckets", "highlightCards", "legend"),
    *("mappings", "minSpan", "reverseYBuckets", "span", "tooltip", "xAxis", "xBucketNumber"),
    *("xBucketSize", "yAxis", "yBucketBound", "yBucketNumber", "yBucketSize"),
)
OF_A_TARGET = ("interval", "metric", "query", "step", "target")
OF_A_ROW = (
    "datasource",
    "fieldConfig",
    "links",
    "maxDataPoints",
    "targets",
    "transformations",
    "transparent",
)
OF_A_VARIABLE = ("tagValuesQuery", "tagsQuery", "useTags")
OF_AN_INTERVAL = ("auto", "auto_count", "auto_min")
OF_A_STEP = ("index", "line", "op", "yaxis")


def dashboard(
    uid: str, title: str, description: str, variables: Sequence[core.Template], rows: Sequence[Row]
) -> dict[str, Any]:
    """Return a dashboard's JSON."""
    panels: list[core.Panel] = []
    top = 0
    for heading, content in rows:
        grid = core.GridPos(h=1, w=COLUMNS, x=0, y=top)
        panels.append(core.RowPanel(title=heading, gridPos=grid))
        top += 1
        left = height = 0
        for panel, width, high in content:
            if left + width > COLUMNS:
                left, top = 0, top + height
                height = 0
            panel.gridPos = core.GridPos(h=high, w=width, x=left, y=top)
            left, height = left + width, max(height, high)
            panels.append(panel)
        top += height
    made = core.Dashboard(
        uid=uid,
        title=title,
        description=description,
        tags=[TAG],
        templating=core.Templating(list=list(variables)),
        panels=panels,
        annotations=core.Annotations(list=[]),
        refresh="30s",
        timezone="browser",
        editable=False,
        graphTooltip=core.GRAPH_TOOLTIP_MODE_SHARED_CROSSHAIR,
        time=core.Time("now-1h", "now"),
        links=[
            core.DashboardLink(
                title=TAG, tags=[TAG], asDropdown=True, includeVars=True, keepTime=True
            )
        ],
    ).auto_panel_ids()
    raw = json.loads(json.dumps(made.to_json_data(), cls=DashboardEncoder))
    found = _without(_no_nulls(raw), OF_A_DASHBOARD)
    found["schemaVersion"] = SCHEMA
    del found["timepicker"]["time_options"]
    found["templating"]["list"] = [_variable(one) for one in found["templating"]["list"]]
    found["panels"] = [_panel(one) for one in found["panels"]]
    return found


def _panel(panel: dict[str, Any]) -> dict[str, Any]:
    """Put one panel right."""
    panel = _without(panel, OF_A_PANEL)
    if panel["type"] == "row":
        return {**_without(panel, OF_A_ROW), "collapsed": False, "panels": []}
    panel["datasource"] = DATASOURCE
    panel["targets"] = [_without(one, OF_A_TARGET) for one in panel["targets"]]
    defaults = panel.get("fieldConfig", {}).get("defaults", {})
    steps = defaults.get("thresholds", {}).get("steps")
    if steps:
        defaults["thresholds"]["steps"] = [_without(step, OF_A_STEP) for step in steps]
    elif "thresholds" in defaults:
        del defaults["thresholds"]
    return panel


def _variable(variable: dict[str, Any]) -> dict[str, Any]:
    """Put one variable right."""
    variable = _without(variable, OF_A_VARIABLE)
    if variable["type"] != "interval":
        variable = _without(variable, OF_AN_INTERVAL)
    if variable.get("includeAll"):
        variable["current"] = {"selected": True, "text": ["All"], "value": ["$__all"]}
    else:
        variable["current"] = {}
    return variable


def _without(values: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _no_nulls(value: Any) -> Any:
    """Drop what is null: only the first step of a threshold means something by it."""
    if isinstance(value, dict):
        kept = {key: _no_nulls(one) for key, one in value.items()}
        return {key: one for key, one in kept.items() if one is not None or key == "value"}
    if isinstance(value, list):
        return [_no_nulls(one) for one in value]
    return value
