"""Every metric of the suite, as data. The one place a metric is born.

Docs, dashboards, alerts and the exposition are made from ``METRICS``; nothing else may
spell a metric's name. Ratios are published beside the counters they come from, so that
PromQL can window them.
"""

from vramscope.exporters.catalog.controller import CONTROLLER_METRICS
from vramscope.exporters.catalog.engine import ENGINE_METRICS
from vramscope.exporters.catalog.exporter import EXPORTER_METRICS
from vramscope.exporters.catalog.fabric import FABRIC_METRICS
from vramscope.exporters.catalog.gpu import GPU_METRICS
from vramscope.exporters.catalog.metric import Metric
from vramscope.exporters.catalog.owners import OWNER_METRICS

__all__ = ["METRICS", "Metric"]

METRICS: tuple[Metric, ...] = (
    *ENGINE_METRICS,
    *GPU_METRICS,
    *OWNER_METRICS,
    *FABRIC_METRICS,
    *EXPORTER_METRICS,
    *CONTROLLER_METRICS,
)
