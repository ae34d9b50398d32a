"""Follows the pages of several engines: each at its own pace, none of them for long."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import aiohttp

from vramscope.exporters.engine.native.fetch import client, fetch
from vramscope.exporters.engine.native.page import read_page
from vramscope.exporters.engine.native.target import Target
from vramscope.exporters.errors import SourceUnavailableError
from vramscope.exporters.signals.native import NativeSample

__all__ = ["Follower", "Got", "wait_s"]

MOST_SHARE = 0.05
"""Of an API server's time that answering us may take: it is what makes tokens into text."""
LONGEST_BACKOFF_S = 60.0


@dataclass(frozen=True, slots=True)
class Got:
    """What the last request for a page gave.

    Attributes:
        samples: one a data-parallel rank; empty with an error.
        at_s: when it was answered, on the follower's clock.
        error: why there is none.
    """

    samples: tuple[NativeSample, ...]
    at_s: float
    error: str | None = None


def wait_s(period_s: float, took_s: float, failures: int) -> float:
    """Return how long to leave a server alone.

    Args:
        period_s: how often a page is wanted.
        took_s: how long the last one took.
        failures: requests that failed since the last success.

    >>> wait_s(1.0, took_s=0.01, failures=0)
    1.0
    >>> wait_s(1.0, took_s=0.5, failures=0)  # half a second of each ten
    9.5
    >>> wait_s(1.0, took_s=0.01, failures=3)
    8.0
    """
    patient_s = max(period_s, took_s / MOST_SHARE - took_s)
    return max(patient_s, min(period_s * 2**failures, LONGEST_BACKOFF_S)) if failures else patient_s


class Follower:
    """Keeps the last answer of each page; ``follow`` until cancelled, or ask ``once``.

    ``got`` may be read from another thread: each answer is replaced as a whole.

    Args:
        targets: the pages.
        period_s: how often each is asked for.
        clock: monotonic, seconds.
    """

    def __init__(
        self,
        targets: Iterable[Target],
        period_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.targets = tuple(targets)
        self.got: dict[Target, Got] = {}
        self._period_s = period_s
        self._clock = clock

    async def once(self) -> None:
        """Ask for each page once, all at the same time."""
        async with client() as session:
            await asyncio.gather(*(self._ask(session, target) for target in self.targets))

    async def follow(self) -> None:
        """Ask for each page again and again."""
        async with client() as session, asyncio.TaskGroup() as tasks:
            for target in self.targets:
                tasks.create_task(self._keep_asking(session, target))

    async def _keep_asking(self, session: aiohttp.ClientSession, target: Target) -> None:
        failures = 0
        while True:
            start_s = self._clock()
            got = await self._ask(session, target)
            failures = failures + 1 if got.error else 0
            await asyncio.sleep(wait_s(self._period_s, self._clock() - start_s, failures))

    async def _ask(self, session: aiohttp.ClientSession, target: Target) -> Got:
        try:
            body = await fetch(session, target.url)
            # Off the loop, which also serves our own page: a millisecond or more a page.
            samples = await asyncio.to_thread(read_page, body)
            got = Got(samples, self._clock())
        except SourceUnavailableError as error:
            got = Got((), self._clock(), f"{target.url}: {error}")
        except Exception as error:  # noqa: BLE001  # one page must not end the others' following
            got = Got((), self._clock(), f"{target.url}: {type(error).__name__}: {error}")
        self.got[target] = got
        return got
