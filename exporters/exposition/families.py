"""Samples under the catalog's names: the only way from a number to a page."""

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from vramscope.exporters.catalog import Metric

__all__ = ["Families", "counter", "gauge", "histogram"]


KINDS = {
    "gauge": GaugeMetricFamily,
    "counter": CounterMetricFamily,
    "histogram": HistogramMetricFamily,
}


class Families(Collector):
    """Gathers samples of one refresh, family by family, in the order they were first added."""

    def __init__(self) -> None:
        self._families: dict[str, Family] = {}

    def add(self, metric: Metric, value: float | None, *labels: str) -> None:
        """Add one sample; ``None`` adds none: absent is not zero.

        Args:
            metric: a gauge or counter of the catalog.
            value: in the metric's unit.
            labels: label values, in the order of ``metric.labels``.
        """
        if value is None:
            return
        self._family(metric, labels).add_metric(list(labels), value)

    def add_histogram(
        self,
        metric: Metric,
        counts: Mapping[float, int],
        total: int,
        summed: float,
        *labels: str,
    ) -> None:
        """Add one histogram.

        Args:
            metric: a histogram of the catalog.
            counts: observations by upper bound, each in one bucket only, bounds ascending.
            total: all observations, those over the last bound included.
            summed: their sum, in the metric's unit.
            labels: label values, in the order of ``metric.labels``.
        """
        upto = zip(counts, accumulate(counts.values()), strict=True)
        buckets = [(str(float(bound)), float(count)) for bound, count in upto]
        family = self._family(metric, labels)
        family.add_metric(list(labels), [*buckets, ("+Inf", float(total))], summed)

    def _family(self, metric: Metric, labels: tuple[str, ...]) -> Any:
        if len(labels) != len(metric.labels):
            raise ValueError(f"{metric.name}: want labels {metric.labels}, got {labels}")
        family = self._families.get(metric.name)
        if family is None:
            family = KINDS[metric.kind](metric.name, metric.help, labels=list(metric.labels))
            self._families[metric.name] = family
        return family

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
