"""The exporter: refreshes on its own clock and keeps the rendered page for whoever scrapes."""

import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from typing import Any, Protocol

from vramscope.exporters.engine.host import Reading
from vramscope.exporters.exposition.rendered import Rendered, Renderer
from vramscope.exporters.exposition.signals_json import signals_document
from vramscope.exporters.gpu.compat import DcgmCompat
from vramscope.exporters.page_maker import PageMaker
from vramscope.exporters.refresh import HardwareReading, NativeReading, Refresh
from vramscope.exporters.signals.samples import EngineSample

__all__ = ["Exporter", "ReadsHardware", "ReadsNative"]


class ReadsHardware(Protocol):
    """Reads the hardware."""

    def read(self, engines: Iterable[EngineSample]) -> HardwareReading:
        """Read now; ``engines`` are to be joined with the GPUs they run on."""


class ReadsNative(Protocol):
    """Reads engines by their own pages."""

    def read(self, engines: Iterable[EngineSample]) -> NativeReading:
        """Return what the pages said last; ``engines`` are those that have a record here."""


class Exporter:
    """Turns readings into a page. Not thread-safe: one refresh at a time.

    Args:
        engines: reads their records.
        hardware: reads GPUs and fabric, if that is wanted.
        native: reads engines by their own pages, if there are such.
        compat: makes dcgm-exporter's families beside ours, if they are wanted.
        period_s: how often it is to be refreshed.
        clock: monotonic, seconds.
    """

    def __init__(
        self,
        engines: Callable[[], Iterable[Reading]],
        hardware: ReadsHardware | None = None,
        native: ReadsNative | None = None,
        compat: DcgmCompat | None = None,
        period_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engines = engines
        self._hardware = hardware
        self._native = native
        self._period_s = period_s
        self._clock = clock
        self._due_s: float | None = None
        self._last_refresh_s: float | None = None
        self._maker = PageMaker(version("vramscope"), compat, Renderer(clock))
        self.sources = self._maker.sources
        self.own = self._maker.own
        self.page: Rendered = self._maker.empty_page()

    def refresh(self) -> Refresh:
        """Read all sources and render the page anew; return what was read."""
        start_s = self._clock()
        refresh = self.read()
        self.page = self._maker.page(refresh)
        self._last_refresh_s = self._clock() - start_s
        return refresh

    def read(self) -> Refresh:
        """Read all sources."""
        engines = tuple(self._engines())
        samples = [reading.sample for reading in engines if reading.sample is not None]
        hardware = self._hardware.read(samples) if self._hardware is not None else None
        native = self._native.read(samples) if self._native is not None else NativeReading()
        return Refresh(self._clock(), engines, hardware, native, self._last_refresh_s)

    def wait_s(self, now_s: float) -> float:
        """Return how long to wait for the next refresh: each period, not at once after a slow one.

        Args:
            now_s: the clock.
        """
        due_s = now_s if self._due_s is None else self._due_s
        self._due_s = max(due_s + self._period_s, now_s)
        return self._due_s - now_s

    def signals(self) -> dict[str, Any]:
        """Read the engines now and return the ``/signals`` document."""
        return signals_document(r.sample for r in self._engines() if r.sample and r.error is None)
