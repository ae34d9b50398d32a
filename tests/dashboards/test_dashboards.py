"""The dashboards ask for what there is, in queries that parse, and say what they show."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from vramscope.dashboards.build import FOLDER, dashboards, files
from vramscope.dashboards.panels import DATASOURCE, UNITS
from vramscope.exporters.catalog import METRICS

promql_parser = pytest.importorskip("promql_parser")

METRIC = {metric.name: metric for metric in METRICS}
OF_PROMETHEUS = {"cluster", "instance", "le"}
KINDS = {"row", "timeseries", "stat", "table", "heatmap", "state-timeline"}
NAME = re.compile(r"\bvramscope_[a-z0-9_]+")
# Counters of a GPU's whole life, kept by the GPU: their value is what matters.
OF_A_LIFE = {"vramscope_gpu_remapped_rows_total"}
SELECTOR = re.compile(r"(vramscope_[a-z0-9_]+)\{([^}]*)\}")
GROUPED = re.compile(r"by \(([a-z_, ]+)\)")

ALL = list(dashboards())


def panels(of: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from (panel for panel in of["panels"] if panel["type"] != "row")


PANELS = [
    pytest.param(panel, id=f"{one['uid']}: {panel['title']}")
    for one in ALL
    for panel in panels(one)
]
QUERIES = [
    pytest.param(target["expr"], id=f"{one['uid']}: {panel['title']} {target['refId']}")
    for one in ALL
    for panel in panels(one)
    for target in panel["targets"]
]


def plain(expression: str) -> str:
    """Return a query as Prometheus gets it."""
    return expression.replace("$__rate_interval", "5m")


def metric_of(name: str) -> str:
    for ending in ("_bucket", "_sum", "_count"):
        if name not in METRIC and name.removesuffix(ending) in METRIC:
            return name.removesuffix(ending)
    return name


def test_committed_files_are_what_is_built() -> None:
    found = {file.name: file.read_text() for file in FOLDER.glob("*.json")}
    assert found == files(), "run: vramscope dashboards build"


@pytest.mark.parametrize("expression", QUERIES)
def test_query_parses(expression: str) -> None:
    promql_parser.parse(plain(expression))


@pytest.mark.parametrize("expression", QUERIES)
def test_query_is_of_metrics_and_labels_that_there_are(expression: str) -> None:
    names = {metric_of(name) for name in NAME.findall(expression)}
    assert names
    assert names <= METRIC.keys()
    for name, matchers in SELECTOR.findall(expression):
        labels = set(re.findall(r'([a-z_]+)(?:=~|!~|=|!=)"', matchers)) - OF_PROMETHEUS
        assert labels <= set(METRIC[metric_of(name)].label_names), name
    known = OF_PROMETHEUS.union(*(METRIC[name].label_names for name in names))
    for group in GROUPED.findall(expression):
        assert set(group.split(", ")) <= known, group


@pytest.mark.parametrize("expression", QUERIES)
def test_counters_are_asked_for_as_rates_and_gauges_are_not(expression: str) -> None:
    for match in NAME.finditer(expression):
        if match[0] in OF_A_LIFE:
            continue
        kind = METRIC[metric_of(match[0])].kind
        rated = expression[: match.start()].endswith(("rate(", "increase("))
        assert rated == (kind != "gauge"), match[0]


@pytest.mark.parametrize("panel", PANELS)
def test_panel_says_what_it_shows(panel: dict[str, Any]) -> None:
    assert panel["type"] in KINDS
    assert len(panel["description"]) > 30
    assert panel["description"].endswith(".")
    assert panel["datasource"] == DATASOURCE
    assert {json.dumps(target["datasource"]) for target in panel["targets"]} == {
        json.dumps(DATASOURCE)
    }


@pytest.mark.parametrize("panel", PANELS)
def test_panel_has_a_unit(panel: dict[str, Any]) -> None:
    if panel["type"] == "table":
        units = [
            prop["value"]
            for override in panel["fieldConfig"]["overrides"]
            for prop in override["properties"]
            if prop["id"] == "unit"
        ]
        assert len(units) == len(panel["targets"])
    elif panel["type"] == "heatmap":
        units = [panel["options"]["yAxis"]["unit"]]
    elif panel["type"] == "state-timeline":
        return
    else:
        units = [panel["fieldConfig"]["defaults"]["unit"]]
    assert set(units) <= set(UNITS.values())


@pytest.mark.parametrize("one", ALL, ids=lambda one: one["uid"])
def test_panels_lie_beside_each_other_and_in_the_grid(one: dict[str, Any]) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in one["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not taken & cells, panel["title"]
        assert all(0 <= x < 24 for x, _ in cells)
        taken |= cells
    ids = [panel["id"] for panel in one["panels"]]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("one", ALL, ids=lambda one: one["uid"])
def test_variables_follow_the_time_range_and_fit_absent_labels(one: dict[str, Any]) -> None:
    source, *values = one["templating"]["list"]
    assert (source["name"], source["type"]) == ("datasource", "datasource")
    for variable in values:
        assert variable["refresh"] == 2
        assert variable["allValue"] == ".*"
        assert variable["current"]["value"] == ["$__all"]
        assert variable["datasource"] == DATASOURCE
        for name in NAME.findall(variable["query"]):
            assert name in METRIC
    text = json.dumps(one["panels"])
    for variable in one["templating"]["list"]:
        assert f"${variable['name']}" in text or "${datasource}" in text


@pytest.mark.parametrize("one", ALL, ids=lambda one: one["uid"])
def test_used_variables_are_declared(one: dict[str, Any]) -> None:
    declared = {variable["name"] for variable in one["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z_]+)", json.dumps(one)))
    assert {name for name in used if not name.startswith("__")} <= declared


def test_links_lead_to_dashboards_that_there_are() -> None:
    uids = {one["uid"] for one in ALL}
    linked = set(re.findall(r"/d/([a-z-]+)\?", json.dumps(ALL)))
    assert linked
    assert linked <= uids
    assert len(uids) == len(ALL) == 6
