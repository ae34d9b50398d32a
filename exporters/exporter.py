"""The exporter: refreshes on its own clock and keeps the rendered page for whoever scrapes."""

import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from vramscope.exporters.catalog import exporter as catalog
from vramscope.exporters.engine.host import Reading
from vramscope.exporters.exposition.engines import add_engine
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.exposition.signals_json import signals_document
from vramscope.exporters.sources import Sources

__all__ = ["Exporter"]


class Exporter:
    """Turns readings into a page. Not thread-safe: one refresh at a time."""

    def __init__(
        self,
        read: Callable[[], Iterable[Reading]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._clock = clock
        self._last_refresh_s: float | None = None
        self.sources = Sources()
        self.page = b""
        self.refreshed_at_s: float | None = None
        """When the page was made, on the exporter's clock; None before the first."""

    def refresh(self) -> None:
        """Read all sources and render the page anew."""
        start_s = self._clock()
        readings = list(self._read())
        self.sources.update(readings, self._clock())
        families = Families()
        families.add(catalog.BUILD_INFO, 1, version("vramscope"))
        self.sources.add_to(families, self._clock())
        families.add(catalog.REFRESH_SECONDS, self._last_refresh_s)
        for reading in readings:
            if reading.sample is not None:
                add_engine(families, reading.sample)
        registry = CollectorRegistry(auto_describe=False)
        registry.register(families)
        self.page = generate_latest(registry)
        self.refreshed_at_s = self._clock()
        self._last_refresh_s = self.refreshed_at_s - start_s

    def age_s(self) -> float | None:
        """Return the age of the page."""
        return None if self.refreshed_at_s is None else self._clock() - self.refreshed_at_s

    def signals(self) -> dict[str, Any]:
        """Read the engines now and return the ``/signals`` document."""
        readings = list(self._read())
        return signals_document(r.sample for r in readings if r.sample and r.error is None)
