"""Grafana's own models read each dashboard and give it back with nothing dropped or changed."""

import importlib
import json
from typing import Any

import pytest

from vramscope.dashboards.build import dashboards

models = pytest.importorskip("grafana_foundation_sdk.models.dashboard")

ALL = list(dashboards())


def round_trip(kind: Any, value: Any) -> Any:
    from grafana_foundation_sdk.cog.encoder import JSONEncoder

    return json.loads(json.dumps(kind.from_json(value), cls=JSONEncoder))


def differences(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """Return what of ours is not in theirs; what they add is theirs."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        found = []
        for name, value in ours.items():
            if value is None:
                continue
            if name not in theirs:
                found.append(f"{path}/{name} is dropped")
            else:
                found += differences(value, theirs[name], f"{path}/{name}")
        return found
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [each for n, (a, b) in pairs for each in differences(a, b, f"{path}[{n}]")]
    return [] if ours == theirs else [f"{path}: {ours!r} became {theirs!r}"]


@pytest.fixture(scope="module", autouse=True)
def plugins() -> None:
    from grafana_foundation_sdk.cog import plugins

    plugins.register_default_plugins()


@pytest.mark.parametrize("one", ALL, ids=lambda one: one["uid"])
def test_dashboard_comes_back_whole(one: dict[str, Any]) -> None:
    whole = {name: value for name, value in one.items() if name != "panels"}
    assert differences(whole, round_trip(models.Dashboard, whole)) == []


@pytest.mark.parametrize("one", ALL, ids=lambda one: one["uid"])
def test_panels_come_back_whole(one: dict[str, Any]) -> None:
    found = []
    for panel in one["panels"]:
        kind = models.RowPanel if panel["type"] == "row" else models.Panel
        found += differences(panel, round_trip(kind, panel), panel["title"])
        if panel["type"] != "row":
            module = panel["type"].replace("-", "")
            options = importlib.import_module(f"grafana_foundation_sdk.models.{module}").Options
            back = round_trip(options, panel["options"])
            found += differences(panel["options"], back, f"{panel['title']}/options")
    assert found == []
