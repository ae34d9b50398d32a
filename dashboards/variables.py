"""The dashboards' variables: where the data is, and which part of the fleet is looked at."""

from grafanalib import core

from vramscope.dashboards.panels import DATASOURCE
from vramscope.dashboards.selectors import CLUSTER, HOST, MODEL

__all__ = ["cluster", "datasource", "engine", "hostname", "model", "uuid"]

FLEET = "vramscope_build_info"
"""A series that each exporter has, so that ``cluster`` has its values whatever else runs."""


def datasource() -> core.Template:
    """Return the choice of a Prometheus."""
    return core.Template(
        name="datasource", type="datasource", query="prometheus", label="Data source"
    )


def cluster() -> core.Template:
    """Return the choice of clusters; all where no series has that label."""
    return _values("cluster", "Cluster", f"label_values({FLEET}, cluster)")


def model() -> core.Template:
    """Return the choice of models."""
    query = f"label_values(vramscope_engine_state{{{CLUSTER}}}, model)"
    return _values("model", "Model", query)


def engine() -> core.Template:
    """Return the choice of engines of the models."""
    query = f"label_values(vramscope_engine_state{{{MODEL}}}, engine)"
    return _values("engine", "Engine", query)


def hostname() -> core.Template:
    """Return the choice of hosts with GPUs."""
    query = f"label_values(vramscope_gpu_info{{{CLUSTER}}}, hostname)"
    return _values("hostname", "Host", query)


def uuid() -> core.Template:
    """Return the choice of GPUs of the hosts."""
    return _values("uuid", "GPU", f"label_values(vramscope_gpu_info{{{HOST}}}, uuid)")


def _values(name: str, label: str, query: str) -> core.Template:
    return core.Template(
        name=name,
        label=label,
        query=query,
        dataSource=DATASOURCE,
        includeAll=True,
        allValue=".*",
        multi=True,
        sort=1,  # by letter
        refresh=core.REFRESH_ON_TIME_RANGE_CHANGE,
    )
