"""Samples under the catalog's names: the only way from a number to a page."""

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import Metric as PrometheusFamily
from prometheus_client.registry import Collector

from vramscope.exporters.catalog import Metric
from vramscope.exporters.exposition.go_float import go_float
from vramscope.exporters.signals.histogram import HistogramSample

__all__ = ["Buckets", "Families", "Family", "counter", "gauge", "histogram", "openmetrics_name"]


class Buckets(NamedTuple):
    """One histogram at one moment.

    Attributes:
        bounds: upper bounds in the metric's unit, ascending, without +Inf.
        upto: observations up to each bound, and last all of them.
        summed: sum of the observations; None where a bound is negative, since it may fall.
    """

    bounds: tuple[float, ...]
    upto: tuple[float, ...]
    summed: float | None


class Family(NamedTuple):
    """The samples of one metric; plain columns, since a refresh makes thousands.

    Attributes:
        metric: their name, type and meaning.
        labels: label values of each sample, in the order of ``metric.label_names``.
        values: of a gauge or counter, in the order of ``labels``.
        buckets: of a histogram, in the order of ``labels``.
    """

    metric: Metric
    labels: list[tuple[str, ...]]
    values: list[float]
    buckets: list[Buckets]


class Families(Collector):
    """Gathers samples of one refresh, family by family, in the order they were first added.

    A label whose value is empty is left out of the page: to Prometheus the two are the same.
    """

    def __init__(self) -> None:
        self._families: dict[str, Family] = {}

    def __iter__(self) -> Iterator[Family]:
        return iter(self._families.values())

    def add(self, metric: Metric, value: float | None, *labels: str) -> None:
        """Add one sample; ``None`` adds none: absent is not zero.

        Args:
            metric: a gauge or counter of the catalog.
            value: in the metric's unit.
            labels: label values, in the order of ``metric.label_names``; the optional ones may
                be left out.
        """
        if value is not None:
            self._family(metric, labels).values.append(value)

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
        bounds = tuple(counts)
        falls = bool(bounds) and bounds[0] < 0
        upto = (*accumulate(counts.values()), total)
        buckets = Buckets(bounds, upto, None if falls else summed)
        self._family(metric, labels).buckets.append(buckets)

    def add_sample(self, metric: Metric, sample: HistogramSample, *labels: str) -> None:
        """Add one histogram as a source saw it."""
        self.add_histogram(metric, sample.counts, sample.total, sample.summed, *labels)

    def _family(self, metric: Metric, labels: tuple[str, ...]) -> Family:
        if len(labels) == len(metric.labels):
            labels += ("",) * len(metric.optional)
        elif len(labels) != len(metric.label_names):
            raise ValueError(f"{metric.name}: want labels {metric.label_names}, got {labels}")
        family = self._families.get(metric.name)
        if family is None:
            family = self._families[metric.name] = Family(metric, [], [], [])
        family.labels.append(labels)
        return family

    def collect(self) -> Iterator[PrometheusFamily]:
        """Yield what was added, as prometheus_client's objects."""
        for metric, all_labels, values, buckets in self:
            name = openmetrics_name(metric)
            unit = metric.unit if name.endswith(f"_{metric.unit}") else ""
            family = PrometheusFamily(name, metric.help, metric.kind, unit)
            for labels, value in zip(all_labels, values, strict=False):  # a histogram has none
                family.add_sample(metric.name, _named(metric, labels), value)
            for labels, one in zip(all_labels, buckets, strict=False):
                named = _named(metric, labels)
                for bound, count in zip((*one.bounds, float("inf")), one.upto, strict=True):
                    le = {"le": go_float(float(bound))}
                    family.add_sample(f"{name}_bucket", named | le, count)
                if one.summed is not None:
                    family.add_sample(f"{name}_count", named, one.upto[-1])
                    family.add_sample(f"{name}_sum", named, one.summed)
            yield family


def openmetrics_name(metric: Metric) -> str:
    """Return the family's name: a counter's sample ends in ``_total``, its family does not."""
    return metric.name.removesuffix("_total") if metric.kind == "counter" else metric.name


def _named(metric: Metric, labels: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name, value in zip(metric.label_names, labels, strict=True) if value}


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
