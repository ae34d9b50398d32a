"""From what refreshes read to pages: no clock, no source, the same page for the same refreshes."""

from collections.abc import Callable

from vramscope.exporters.catalog import exporter as catalog
from vramscope.exporters.exposition.engines import add_engine
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.exposition.hardware import add_hardware
from vramscope.exporters.exposition.native import add_native_pages
from vramscope.exporters.exposition.render import FamilyText
from vramscope.exporters.exposition.rendered import Rendered, Renderer
from vramscope.exporters.exposition.vram import add_vram_of_devices
from vramscope.exporters.gpu.compat import DcgmCompat
from vramscope.exporters.refresh import Refresh
from vramscope.exporters.sources import Sources

__all__ = ["PageMaker"]


class PageMaker:
    """Makes the page of each refresh. Not thread-safe: one at a time, in their order.

    Args:
        version: of vramscope, where the refreshes were read.
        compat: makes dcgm-exporter's families beside ours, if they are wanted.
        renderer: makes text of families.
    """

    def __init__(
        self, version: str, compat: DcgmCompat | None = None, renderer: Renderer | None = None
    ) -> None:
        self._version = version
        self._compat = compat
        self._renderer = renderer or Renderer()
        self.sources = Sources()
        self.own: list[Callable[[Families], None]] = []
        """Adds what else the exporter says of itself, such as its connections."""

    def page(self, refresh: Refresh) -> Rendered:
        """Return the page of the next refresh."""
        body = Families()
        for sample in refresh.samples:
            add_engine(body, sample)
        if refresh.hardware is not None:
            add_vram_of_devices(body, refresh.samples, refresh.hardware.gpus.samples)
            add_hardware(body, refresh.hardware, refresh.at_s)
        add_native_pages(body, refresh.native, refresh.at_s)
        self.sources.update(refresh.readings, refresh.at_s)
        head = Families()
        head.add(catalog.BUILD_INFO, 1, self._version)
        self.sources.add_to(head, refresh.at_s)
        head.add(catalog.REFRESH_SECONDS, refresh.last_refresh_s)
        for add in self.own:
            add(head)
        texts: tuple[FamilyText, ...] = ()
        if self._compat is not None and refresh.hardware is not None:
            hardware = refresh.hardware
            texts = tuple(self._compat.texts(hardware.gpus, hardware.owners.owner))
        return self._renderer.render([*head, *body], texts)

    def empty_page(self) -> Rendered:
        """Return what there is before the first refresh."""
        return self._renderer.render(())
