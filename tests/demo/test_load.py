import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import chain, repeat

import pytest
from aiohttp import web

from vramscope.demo.load import ABORTED, COMPLETED, CUT, FAILED, REFUSED, Report, run_load
from vramscope.demo.requests import Ask

USAGE = {"prompt_tokens": 10, "completion_tokens": 3}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def endpoint(handler: Handler) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/v1/completions", handler)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def ask(streamed: bool = False, abort_after_s: float | None = None) -> Ask:
    return Ask("/v1/completions", {"model": "tiny", "stream": streamed}, abort_after_s)


async def load_of_one(handler: Handler, one: Ask) -> Report:
    """Answer one request with ``handler``; the next one, never answered, ends the load."""
    stop = asyncio.Event()

    async def first_then_stop(request: web.Request) -> web.StreamResponse:
        if not asked:
            asked.append(request)
            return await handler(request)
        stop.set()
        await asyncio.Event().wait()
        raise AssertionError

    asked: list[web.Request] = []
    async with endpoint(first_then_stop) as url:
        return await run_load(url, chain([one], repeat(ask())), clients=1, stop=stop)


async def plain(_: web.Request) -> web.Response:
    return web.json_response({"choices": [], "usage": USAGE})


def stream(*events: object) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for event in events:
            text = event if isinstance(event, str) else json.dumps(event)
            await response.write(f"data: {text}\n\n".encode())
        return response

    return answer


TOKEN = {"choices": [{"text": "x"}], "usage": None}
LAST = {"choices": [], "usage": USAGE}


@pytest.mark.parametrize(
    ("handler", "streamed"), [(plain, False), (stream(TOKEN, TOKEN, LAST, "[DONE]"), True)]
)
async def test_a_whole_answer_counts_with_its_tokens(handler: Handler, streamed: bool) -> None:
    report = await load_of_one(handler, ask(streamed))
    assert report.outcomes == {COMPLETED: 1, CUT: 1}
    assert (report.prompt_tokens, report.completion_tokens) == (10, 3)
    assert len(report.ttft_s) == streamed
    assert not report.errors


@pytest.mark.parametrize(
    ("handler", "problem"),
    [
        (stream(TOKEN, LAST), "a stream ended early"),
        (stream(TOKEN, "[DONE]"), "a stream ended early"),
        (stream(TOKEN, {"error": {"message": "gone"}}, "[DONE]"), "error in the stream"),
        (stream(TOKEN, "{"), "JSONDecodeError"),
    ],
)
async def test_a_stream_that_is_not_whole_has_failed(handler: Handler, problem: str) -> None:
    report = await load_of_one(handler, ask(streamed=True))
    assert report.outcomes == {FAILED: 1, CUT: 1}
    assert problem in next(iter(report.errors))
    assert report.completion_tokens == 0


@pytest.mark.parametrize(("status", "outcome"), [(404, REFUSED), (429, REFUSED), (500, FAILED)])
async def test_an_error_status_says_what_the_endpoint_said(status: int, outcome: str) -> None:
    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=status, text="no such model")

    report = await load_of_one(refuse, ask())
    assert report.outcomes == {outcome: 1, CUT: 1}
    assert list(report.errors) == [f"HTTP {status}: no such model"]


async def test_a_client_that_hangs_up_is_counted_apart() -> None:
    left = asyncio.Event()

    async def never(_: web.Request) -> web.Response:
        try:
            await asyncio.Event().wait()
        finally:
            left.set()
        raise AssertionError

    report = await load_of_one(never, ask(abort_after_s=0.05))
    assert report.outcomes == {ABORTED: 1, CUT: 1}
    assert left.is_set()


async def test_no_more_requests_are_in_flight_than_there_are_clients() -> None:
    stop = asyncio.Event()
    in_flight, most, answered = 0, 0, 0

    async def count(_: web.Request) -> web.Response:
        nonlocal in_flight, most, answered
        in_flight += 1
        most = max(most, in_flight)
        await asyncio.sleep(0)
        in_flight -= 1
        answered += 1
        if answered == 50:
            stop.set()
        return web.json_response({"usage": USAGE})

    def asks() -> Iterator[Ask]:
        return repeat(ask())

    async with endpoint(count) as url:
        report = await run_load(url, asks(), clients=3, stop=stop)
    assert 1 <= most <= 3
    assert report.outcomes[COMPLETED] >= 50 - 3
