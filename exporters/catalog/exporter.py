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
EXPORTER_CONNECTIONS = Metric(
    "vramscope_exporter_connections",
    "gauge",
    "connections",
    "Connections to the exporter, by what they do: answering, or waiting for a request.",
    ("state",),
)
EXPORTER_CONNECTIONS_CUT = Metric(
    "vramscope_exporter_connections_cut_total",
    "counter",
    "connections",
    "Connections that the exporter ended: evicted to make room, refused since all places were "
    "being answered, failed in their TLS handshake, or past a timeout.",
    ("reason",),
)

EXPORTER_METRICS: tuple[Metric, ...] = (
    SOURCE_UP,
    SOURCE_AGE,
    SOURCE_ERRORS,
    REFRESH_SECONDS,
    BUILD_INFO,
    EXPORTER_CONNECTIONS,
    EXPORTER_CONNECTIONS_CUT,
)
