"""Several pages followed at once."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from vramscope.exporters.engine.native.follow import Follower, wait_s
from vramscope.exporters.engine.native.target import Target

Serve = Callable[[Callable[[web.Request], Awaitable[web.StreamResponse]]], Awaitable[str]]
RUNNING = 'vllm:num_requests_running{{engine="0",model_name="m"}} {}\n'


async def test_slow_engine_does_not_delay_another(serve: Serve) -> None:
    asked_thrice = asyncio.Event()
    answers = iter(range(10))

    async def quick(_: web.Request) -> web.Response:
        number = next(answers)
        if number == 2:
            asked_thrice.set()
        return web.Response(text=RUNNING.format(number))

    async def never(_: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    slow, fast = Target("slow", await serve(never)), Target("fast", await serve(quick))
    follower = Follower([slow, fast], period_s=0.001)
    task = asyncio.create_task(follower.follow())
    async with asyncio.timeout(20):
        await asked_thrice.wait()
    assert slow not in follower.got
    assert follower.got[fast].samples[0].running in (0, 1, 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_bad_page_is_its_own_error_and_is_asked_for_again(serve: Serve) -> None:
    good = asyncio.Event()
    pages = iter(["vllm:num_requests_running{} junk\n", "<html>", RUNNING.format(3)])

    async def handle(_: web.Request) -> web.Response:
        text = next(pages, None)
        if text is None:
            good.set()
        return web.Response(text=text or RUNNING.format(3))

    target = Target("a", await serve(handle))
    follower = Follower([target], period_s=0.001)
    await follower.once()
    assert follower.got[target].samples == ()
    assert (follower.got[target].error or "").startswith(f"{target.url}: the page is no metrics")
    task = asyncio.create_task(follower.follow())
    async with asyncio.timeout(20):
        await good.wait()
    assert follower.got[target].error is None
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_nothing_to_follow_ends_at_once() -> None:
    async with asyncio.timeout(20):
        await Follower((), period_s=1.0).follow()


def test_failures_are_asked_ever_less_up_to_a_minute() -> None:
    waits = [wait_s(1.0, took_s=0.0, failures=n) for n in range(9)]
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


@pytest.mark.parametrize("took_s", [0.01, 0.2, 5.0])
def test_a_server_answers_us_at_most_a_twentieth_of_its_time(took_s: float) -> None:
    assert took_s / (took_s + wait_s(1.0, took_s, failures=0)) <= 0.05 + 1e-9
