"""A recording as something to serve: each refresh's page at its time."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from vramscope.exporters.exposition.signals_json import signals_document
from vramscope.exporters.gpu.compat import DcgmCompat
from vramscope.exporters.page_maker import PageMaker
from vramscope.exporters.recording.framing import RecordingError
from vramscope.exporters.recording.reader import Recording
from vramscope.exporters.refresh import Refresh

__all__ = ["Replay"]


class Replay:
    """Makes the pages of a recording, one a ``refresh``, as they were made live.

    Args:
        recording: which.
        compat: makes dcgm-exporter's families beside ours, if they are wanted.
        speed: recorded seconds a second.
        clock: monotonic, seconds.

    Raises:
        RecordingError: it has no refresh.
    """

    def __init__(
        self,
        recording: Recording,
        compat: DcgmCompat | None = None,
        speed: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._refreshes: Iterator[Refresh] = iter(recording)
        self._speed = speed
        self._maker = PageMaker(recording.started.version, compat)
        self.sources = self._maker.sources
        first = next(self._refreshes, None)
        if first is None:
            raise RecordingError(f"{recording.path}: no refresh in it")
        self._first_s = first.at_s
        self._start_s = clock()
        self._next: Refresh | None = first
        self.shown: Refresh = first
        """What the page is of."""
        self.page = self._maker.empty_page()

    def refresh(self) -> None:
        """Make the next page; stay at the last one."""
        if self._next is not None:
            self.shown = self._next
            self.page = self._maker.page(self.shown)
            self._next = next(self._refreshes, None)

    def go_to(self, offset_s: float) -> None:
        """Make the page of the last refresh that is not more than ``offset_s`` after the first."""
        while self._next is not None and self._next.at_s - self._first_s <= offset_s:
            self.shown = self._next
            self.page = self._maker.page(self.shown)
            self._next = next(self._refreshes, None)

    def signals(self) -> dict[str, Any]:
        """Return the ``/signals`` document of what is shown."""
        engines = self.shown.engines
        return signals_document(r.sample for r in engines if r.sample and r.error is None)

    def wait_s(self, now_s: float) -> float | None:
        """Return how long to wait for the next refresh; None after the last.

        Args:
            now_s: the clock.
        """
        if self._next is None:
            return None
        due_s = self._start_s + (self._next.at_s - self._first_s) / self._speed
        return max(0.0, due_s - now_s)
