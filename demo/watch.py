"""Follows the engines through the exporter while the load runs, and prints them live."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import aiohttp

from vramscope.demo.live_table import header, row
from vramscope.demo.signals import EngineView, fetch_engines

__all__ = ["History", "settle", "watch"]

SAMPLE_PERIOD_S = 0.5
SHOW_PERIOD_S = 5.0
SETTLE_S = 5.0
HEADER_EVERY = 6
"""Times the engines are shown under one header."""


@dataclass(slots=True)
class History:
    """What was seen of each engine, oldest first.

    Attributes:
        views: by engine.
        present: engines of the latest reading.
        misses: reads of the exporter that failed.
    """

    views: dict[str, list[EngineView]] = field(default_factory=dict)
    present: tuple[str, ...] = ()
    misses: int = 0

    def add(self, engines: Sequence[EngineView]) -> None:
        """Append one reading."""
        self.present = tuple(engine.engine for engine in engines)
        for engine in engines:
            self.views.setdefault(engine.engine, []).append(engine)


async def watch(
    exporter_url: str,
    history: History,
    say: Callable[[str], None],
    *,
    stop: asyncio.Event,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Read the exporter twice a second into ``history``; print each engine every few seconds."""
    began_s = shown_s = clock()
    before: dict[str, EngineView] = {}
    shown = 0
    timeout = aiohttp.ClientTimeout(total=SHOW_PERIOD_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        while not stop.is_set():
            try:
                engines = await fetch_engines(session, exporter_url)
            except (aiohttp.ClientError, TimeoutError):
                history.misses += 1
                engines = []
            history.add(engines)
            now_s = clock()
            if now_s - began_s >= (shown + 1) * SHOW_PERIOD_S and engines:
                if shown % HEADER_EVERY == 0:
                    say(header())
                for engine in engines:
                    earlier = before.get(engine.engine, engine)
                    say(row(now_s - began_s, engine, earlier, now_s - shown_s))
                shown += 1
                shown_s, before = now_s, {engine.engine: engine for engine in engines}
            elif not before:
                before = {engine.engine: engine for engine in engines}
            await pause(stop, SAMPLE_PERIOD_S)


async def settle(exporter_url: str, history: History) -> None:
    """Add the last reading: of engines that have dropped what the load's end cut, if they do."""
    timeout = aiohttp.ClientTimeout(total=SHOW_PERIOD_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        engines: list[EngineView] = []
        try:
            async with asyncio.timeout(SETTLE_S):
                while not engines or any(e.running or e.waiting for e in engines):
                    engines = await fetch_engines(session, exporter_url)
                    await asyncio.sleep(SAMPLE_PERIOD_S)
        except (aiohttp.ClientError, TimeoutError):
            history.misses += 1
        history.add(engines)


async def pause(stop: asyncio.Event, seconds: float) -> None:
    """Wait for ``seconds``, or less when ``stop`` is set."""
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return
