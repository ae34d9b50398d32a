"""What is known of each source: is it up, since when not, why; said once a change."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from vramscope.exporters.catalog import exporter as catalog
from vramscope.exporters.engine.host import FOLDER_SOURCE, Reading
from vramscope.exporters.exposition.families import Families

__all__ = ["Sources"]

log = logging.getLogger("vramscope.sources")

FORGET_AFTER_S = 300.0


@dataclass(slots=True)
class _Source:
    errors: int = 0
    error: str | None = None
    read_s: float | None = None
    seen_s: float = 0.0


class Sources:
    """Follows the readings of each refresh.

    A source that is gone (an engine that left) is dropped at once; one that had failed keeps
    its error count for five minutes, so that a flapping source does not reset a counter.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Source] = {}
        self._present: set[str] = set()

    def update(self, readings: Iterable[Reading], now: float) -> None:
        """Take in one refresh; log what changed."""
        self._present = set()
        for reading in readings:
            self._present.add(reading.source)
            source = self._known.setdefault(reading.source, _Source())
            source.seen_s = now
            if reading.error is None:
                source.read_s = now
                if source.error is not None:
                    log.info("%s: reads again", reading.source)
            else:
                source.errors += 1
                if source.error != reading.error:
                    log.warning("%s: %s", reading.source, reading.error)
            source.error = reading.error
        for name, source in list(self._known.items()):
            if now - source.seen_s > FORGET_AFTER_S or (
                name not in self._present and not source.errors
            ):
                del self._known[name]

    @property
    def ready(self) -> bool:
        """Whether at least one source reads."""
        return any(self._known[name].error is None for name in self._present)

    @property
    def errors(self) -> list[str]:
        """The current errors, one line each."""
        known = ((name, self._known[name].error) for name in sorted(self._present))
        return [f"{name}: {error}" for name, error in known if error is not None]

    def add_to(self, families: Families, now: float) -> None:
        """Add up, age and errors of each present source."""
        for name in sorted(self._present, key=lambda name: (name != FOLDER_SOURCE, name)):
            source = self._known[name]
            families.add(catalog.SOURCE_UP, float(source.error is None), name)
            age_s = None if source.read_s is None else now - source.read_s
            families.add(catalog.SOURCE_AGE, age_s, name)
            families.add(catalog.SOURCE_ERRORS, source.errors, name)
