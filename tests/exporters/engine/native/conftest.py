"""A small HTTP server for each test, and vLLM's pages as they were recorded."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from aiohttp import web

DATA = Path(__file__).parent / "data"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture
def page() -> Callable[[str], bytes]:
    """Returns a recorded page of vLLM 0.32's by the end of its name."""

    def read(name: str) -> bytes:
        return (DATA / f"vllm_0.32_{name}.txt").read_bytes()

    return read


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[Handler], Awaitable[str]]]:
    """Serves a handler on a loopback port; returns the URL of its /metrics."""
    async with AsyncExitStack() as stack:

        async def start(handler: Handler) -> str:
            app = web.Application()
            app.router.add_get("/metrics", handler)
            runner = web.AppRunner(app, shutdown_timeout=0.1)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            host, port = runner.addresses[0][:2]
            return f"http://{host}:{port}/metrics"

        yield start
