"""Samples under the catalog's names: the only way from a number to a page."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from vramscope.exporters.catalog import Metric

__all__ = ["Families", "counter", "gauge", "histogram"]


class Families(Collector):
    """Gathers samples of one refresh, family by family, in the order they were first added."""

    def __init__(self) -> None:
        self._families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}

    def add(self, metric: Metric, value: float | None, *labels: str) -> None:
        """Add one sample; ``None`` adds none: absent is not zero.

        Args:
            metric: a gauge or counter of the catalog.
            value: in the metric's unit.
            labels: label values, in the order of ``metric.labels``.
        """
        if value is None:
            return
        if len(labels) != len(metric.labels):
            raise ValueError(f"{metric.name}: want labels {metric.labels}, got {labels}")
        family = self._families.get(metric.name)
        if family is None:
            kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family = kind(metric.name, metric.help, labels=list(metric.labels))
            self._families[metric.name] = family
        family.add_metric(list(labels), value)

    def collect(self) -> Iterator[Family]:
        """Yield what was added."""
        yield from self._families.values()


def counter(metric: Metric, registry: CollectorRegistry) -> Counter:
    """Return a live counter named and labelled by the catalog."""
    return Counter(metric.name, metric.help, metric.labels, registry=registry)


def gauge(metric: Metric, registry: CollectorRegistry) -> Gauge:
    """Return a live gauge named and labelled by the catalog."""
    return Gauge(metric.name, metric.help, metric.labels, registry=registry)


def histogram(metric: Metric, registry: CollectorRegistry) -> Histogram:
    """Return a live histogram named, labelled and bucketed by the catalog."""
    return Histogram(
        metric.name, metric.help, metric.labels, buckets=metric.buckets, registry=registry
    )
