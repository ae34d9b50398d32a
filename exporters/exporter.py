"""The exporter: refreshes on its own clock and keeps the rendered page for whoever scrapes."""

import time
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from typing import Any, Protocol

from vramscope.exporters.catalog import exporter as catalog
from vramscope.exporters.engine.host import Reading
from vramscope.exporters.exposition.engines import add_engine
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.exposition.render import FamilyText
from vramscope.exporters.exposition.rendered import Rendered, Renderer
from vramscope.exporters.exposition.signals_json import signals_document
from vramscope.exporters.signals.samples import EngineSample
from vramscope.exporters.sources import Sources

__all__ = ["Exporter", "MoreSources"]


class MoreSources(Protocol):
    """What else is on the page beside the engines.

    Attributes:
        texts: of the last ``add_to``, families under names that are not the catalog's.
    """

    texts: Sequence[FamilyText]

    def add_to(self, families: Families, engines: Iterable[EngineSample]) -> Sequence[Reading]:
        """Read now, add the families, and return what was read and what was not."""


class Exporter:
    """Turns readings into a page. Not thread-safe: one refresh at a time.

    Args:
        read: the engines.
        more: what else is on the page.
        clock: monotonic, seconds.
    """

    def __init__(
        self,
        read: Callable[[], Iterable[Reading]],
        *more: MoreSources,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._more = more
        self._clock = clock
        self._renderer = Renderer(clock)
        self._last_refresh_s: float | None = None
        self._version = version("vramscope")
        self.sources = Sources()
        self.own: list[Callable[[Families], None]] = []
        """Adds what else the exporter says of itself, such as its connections."""
        self.page: Rendered = self._renderer.render(())
        self.refreshed_at_s: float | None = None
        """When the page was made, on the exporter's clock; None before the first."""

    def refresh(self) -> None:
        """Read all sources and render the page anew."""
        start_s = self._clock()
        readings = list(self._read())
        samples = [reading.sample for reading in readings if reading.sample is not None]
        body = Families()
        for sample in samples:
            add_engine(body, sample)
        for more in self._more:
            readings += more.add_to(body, samples)
        self.sources.update(readings, self._clock())
        head = Families()
        head.add(catalog.BUILD_INFO, 1, self._version)
        self.sources.add_to(head, self._clock())
        head.add(catalog.REFRESH_SECONDS, self._last_refresh_s)
        for add in self.own:
            add(head)
        foreign = [text for more in self._more for text in more.texts]
        self.page = self._renderer.render([*head, *body], foreign)
        self.refreshed_at_s = self._clock()
        self._last_refresh_s = self.refreshed_at_s - start_s

    def age_s(self) -> float | None:
        """Return the age of the page."""
        return None if self.refreshed_at_s is None else self._clock() - self.refreshed_at_s

    def signals(self) -> dict[str, Any]:
        """Read the engines now and return the ``/signals`` document."""
        readings = list(self._read())
        return signals_document(r.sample for r in readings if r.sample and r.error is None)
