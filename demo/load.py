"""Sends a bounded load to an OpenAI-compatible endpoint and counts what came of it."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from vramscope.demo.requests import Ask

__all__ = ["ABORTED", "COMPLETED", "CUT", "FAILED", "REFUSED", "Report", "run_load"]

COMPLETED = "completed"
ABORTED = "aborted by the client"
CUT = "cut at the end"
REFUSED = "refused"
FAILED = "failed"

REQUEST_TIMEOUT_S = 120.0
PAUSE_AFTER_FAILURE_S = 0.5
"""A client that fails at once must not spin."""


@dataclass(slots=True)
class Report:
    """What the clients saw.

    Attributes:
        outcomes: requests by how they ended.
        prompt_tokens: of completed requests, as the endpoint's usage says.
        completion_tokens: likewise.
        ttft_s: time to first byte of content of each completed streamed request.
        errors: requests by what went wrong, in the endpoint's or the client's words.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    ttft_s: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)


class BadAnswerError(Exception):
    """The endpoint answered with an error, or with something that is no answer."""

    def __init__(self, outcome: str, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome


async def run_load(
    url: str,
    asks: Iterator[Ask],
    *,
    clients: int,
    stop: asyncio.Event,
    clock: Callable[[], float] = time.monotonic,
) -> Report:
    """Keep ``clients`` requests in flight until ``stop`` is set; then cut what is in flight.

    Args:
        url: of the endpoint, without ``/v1``.
        asks: the requests; must not end.
        clients: requests in flight at once.
        stop: ends the load.
        clock: monotonic seconds.
    """
    report = Report()
    timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S)
    connector = aiohttp.TCPConnector(limit=clients)
    async with aiohttp.ClientSession(url, timeout=timeout, connector=connector) as session:
        tasks = [asyncio.create_task(client(session, asks, report, clock)) for _ in range(clients)]
        ended = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([ended, *tasks], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (ended, *tasks):
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result
    return report


async def client(
    session: aiohttp.ClientSession, asks: Iterator[Ask], report: Report, clock: Callable[[], float]
) -> None:
    """Send one request after the other until cancelled."""
    for ask in asks:
        try:
            async with asyncio.timeout(ask.abort_after_s):
                await exchange(session, ask, report, clock)
            report.outcomes[COMPLETED] += 1
            continue
        except TimeoutError:
            if ask.abort_after_s is not None:
                report.outcomes[ABORTED] += 1
                continue
            problem, outcome = f"no answer within {REQUEST_TIMEOUT_S:.0f} s", FAILED
        except BadAnswerError as error:
            problem, outcome = str(error), error.outcome
        except (aiohttp.ClientError, ValueError, KeyError) as error:
            problem, outcome = f"{type(error).__name__}: {error}", FAILED
        except asyncio.CancelledError:
            report.outcomes[CUT] += 1
            raise
        report.outcomes[outcome] += 1
        report.errors[problem] += 1
        await asyncio.sleep(PAUSE_AFTER_FAILURE_S)


async def exchange(
    session: aiohttp.ClientSession, ask: Ask, report: Report, clock: Callable[[], float]
) -> None:
    """Send one request, take its whole answer, and count its tokens.

    Raises:
        BadAnswerError: it is not a whole answer.
    """
    started_s = clock()
    async with session.post(ask.path, json=ask.body) as response:
        if response.status != 200:
            outcome = REFUSED if response.status < 500 else FAILED
            raise BadAnswerError(outcome, f"HTTP {response.status}: {await response.text()}"[:200])
        if not ask.streamed:
            usage = (await response.json())["usage"]
        else:
            usage, first_s = await read_stream(response, clock)
            report.ttft_s.append(first_s - started_s)
    report.prompt_tokens += usage["prompt_tokens"]
    report.completion_tokens += usage["completion_tokens"]


async def read_stream(
    response: aiohttp.ClientResponse, clock: Callable[[], float]
) -> tuple[dict[str, Any], float]:
    """Read server-sent events to their end.

    Returns:
        The usage that the last chunk brings, and the moment of the first chunk with choices.

    Raises:
        BadAnswerError: an error event, or an end without usage or ``[DONE]``.
    """
    usage: dict[str, Any] | None = None
    first_s: float | None = None
    async for raw in response.content:
        if not raw.startswith(b"data: "):
            continue
        data = raw.removeprefix(b"data: ").strip()
        if data == b"[DONE]":
            if usage is None or first_s is None:
                break
            return usage, first_s
        chunk = json.loads(data)
        if "error" in chunk:
            raise BadAnswerError(FAILED, f"error in the stream: {chunk['error']}"[:200])
        if first_s is None and chunk.get("choices"):
            first_s = clock()
        usage = chunk.get("usage") or usage
    raise BadAnswerError(FAILED, "a stream ended early")
