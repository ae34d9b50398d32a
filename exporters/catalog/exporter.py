"""Metrics of the exporter about its own sources."""

from vramscope.exporters.catalog.metric import Metric

__all__ = ["EXPORTER_METRICS"]

SOURCE_UP = Metric(
    "vramscope_source_up",
    "gauge",
    "",
    "1 when the last read of a source succeeded, 0 when it failed.",
    ("source",),
)
SOURCE_AGE = Metric(
    "vramscope_source_age_seconds",
    "gauge",
    "seconds",
    "Time since a source was last read with success.",
    ("source",),
)
SOURCE_ERRORS = Metric(
    "vramscope_source_errors_total",
    "counter",
    "errors",
    "Failed reads of a source.",
    ("source",),
)
REFRESH_SECONDS = Metric(
    "vramscope_exporter_refresh_seconds",
    "gauge",
    "seconds",
    "Time the last refresh took: reading the sources and rendering the page.",
)
BUILD_INFO = Metric(
    "vramscope_build_info",
    "gauge",
    "",
    "1, with the version of vramscope that serves this page.",
    ("version",),
)

EXPORTER_METRICS: tuple[Metric, ...] = (
    SOURCE_UP,
    SOURCE_AGE,
    SOURCE_ERRORS,
    REFRESH_SECONDS,
    BUILD_INFO,
)
