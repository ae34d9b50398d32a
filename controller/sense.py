"""Reads the engines' records on a clock of its own and keeps the last good values."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from vramscope.controller.belief import Observation
from vramscope.exporters.engine.host import FOLDER_SOURCE, Reading
from vramscope.exporters.signals.samples import EngineSample

__all__ = ["Sense"]

log = logging.getLogger(__name__)


class Sense:
    """Keeps an observation an engine; a failing source leaves the last one to grow old.

    An engine that a good read no longer finds is forgotten: its process is gone.

    Args:
        read: returns the readings of now; may block, so it runs in a thread.
        period_s: pause between two reads.
        clock: monotonic seconds, the same as the ledger's.
    """

    def __init__(
        self,
        read: Callable[[], Sequence[Reading]],
        period_s: float,
        clock: Callable[[], float],
    ) -> None:
        self._read = read
        self._period_s = period_s
        self._clock = clock
        self._observations: dict[str, Observation] = {}
        self._errors: dict[str, str] = {}
        self._succeeded_at_s: float | None = None
        self._up = False

    @property
    def up(self) -> bool:
        """Whether the last read succeeded."""
        return self._up

    def age_s(self) -> float | None:
        """Return the time since the last read that succeeded; None before the first."""
        return None if self._succeeded_at_s is None else self._clock() - self._succeeded_at_s

    def observation(self, engine: str) -> Observation | None:
        """Return what was last read of an engine."""
        return self._observations.get(engine)

    async def run(self) -> None:
        """Read for ever; cancel it to stop."""
        while True:
            await self.once()
            await asyncio.sleep(self._period_s)

    async def once(self) -> None:
        """Read once; failures are logged when they begin, change and end."""
        # The read's start: what is dispatched while it runs may not be in it, and counting a
        # request twice for a moment is the careful side.
        started_s = self._clock()
        try:
            readings = await asyncio.to_thread(self._read)
        except Exception as error:  # noqa: BLE001 - a reader's bug must not stop the front door
            reason = f"{type(error).__name__}: {error}"
            readings = [Reading(FOLDER_SOURCE, error=reason)]
        errors = {one.source: one.error for one in readings if one.error is not None}
        self._note(errors)
        self._up = FOLDER_SOURCE not in errors
        if self._up:
            self._take(readings, started_s)
            self._succeeded_at_s = started_s

    def _take(self, readings: Sequence[Reading], now_s: float) -> None:
        samples: dict[str, list[EngineSample]] = {}
        for reading in readings:
            # With an error, a sample says only which engine it is about.
            if reading.sample is not None and reading.error is None:
                samples.setdefault(reading.sample.engine, []).append(reading.sample)
        observed = {name: Observation(tuple(ones), now_s) for name, ones in samples.items()}
        if any(one.error is not None for one in readings):
            # Whose a broken record is may be unknown, so no engine is forgotten.
            observed = {**self._observations, **observed}
        self._observations = observed

    def _note(self, errors: Mapping[str, str]) -> None:
        for source, error in errors.items():
            if self._errors.get(source) != error:
                log.warning("%s: %s", source, error)
        for source in self._errors.keys() - errors.keys():
            log.info("%s can be read again", source)
        self._errors = dict(errors)
