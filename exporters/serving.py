"""Serves an exporter's pages while it refreshes, until a signal or its end."""

import argparse
import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

from aiohttp import web

from vramscope.exporters.exposition.endpoint import SWITCH_INTERVAL_S, Endpoint, serve
from vramscope.exporters.exposition.limits import Limits
from vramscope.exporters.exposition.pages import Page
from vramscope.exporters.exposition.rendered import Rendered
from vramscope.exporters.sources import Sources

__all__ = ["Served", "serve_exporter"]

STALE_AFTER_S = 5.0


class Served(Protocol):
    """What refreshes and has pages. One call at a time, off the loop, but for ``page``."""

    page: Rendered
    sources: Sources

    def refresh(self) -> object:
        """Make the page anew."""

    def signals(self) -> dict[str, Any]:
        """Return the ``/signals`` document."""

    def wait_s(self, now_s: float) -> float | None:
        """Return how long after ``now_s`` the next refresh is due; None: it was the last."""


async def serve_exporter(
    exporter: Served,
    options: argparse.Namespace,
    *,
    command: str,
    started: Callable[[Endpoint], None] = lambda _: None,
) -> None:
    """Serve until SIGINT, SIGTERM or the last refresh.

    Args:
        exporter: what to serve.
        options: of ``export_options.add_endpoint``.
        command: whose pages these are, for the line that says where.
        started: called with the endpoint once it listens.
    """
    # A refresh is computing; a scrape that meets it waits for one such interval, not for 5 ms.
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    serving = _Serving(exporter)
    await serving.refresh()
    host, port = options.listen
    async with serve(
        serving.routes(),
        host=host,
        port=port,
        web_config_file=options.web_config_file,
        limits=Limits(max_connections=options.max_connections),
    ) as endpoint:
        started(endpoint)
        loop.add_signal_handler(signal.SIGHUP, endpoint.reload_soon)
        sys.stdout.write(f"vramscope {command}: {endpoint.url}/metrics\n")
        sys.stdout.flush()
        await serving.refresh_until(stop)


class _Serving:
    """The refreshes of one exporter, and what the pages need to know of them."""

    def __init__(self, exporter: Served) -> None:
        self._exporter = exporter
        self._reading = asyncio.Lock()  # one read at a time: a refresh, or a request for /signals
        self._due_s = time.monotonic()

    async def refresh(self) -> None:
        async with self._reading:
            await asyncio.to_thread(self._exporter.refresh)

    async def refresh_until(self, stop: asyncio.Event) -> None:
        """Refresh when it is due; a slow source makes the next one late, never two at once."""
        while not stop.is_set():
            now_s = time.monotonic()
            wait_s = self._exporter.wait_s(now_s)
            if wait_s is None:
                return
            self._due_s = now_s + wait_s
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), wait_s)
                return
            await self.refresh()

    def routes(self) -> dict[str, Page]:
        exporter = self._exporter

        async def metrics() -> Rendered:
            return exporter.page

        async def signals() -> web.Response:
            async with self._reading:
                document = await asyncio.to_thread(exporter.signals)
            return web.json_response(document)

        async def healthz() -> web.Response:
            late_s = time.monotonic() - self._due_s
            if late_s > STALE_AFTER_S:
                return web.Response(status=503, text=f"a refresh is due for {late_s:.1f} s\n")
            return web.Response(text="ok\n")

        async def readyz() -> web.Response:
            if exporter.sources.ready:
                return web.Response(text="ok\n")
            return web.Response(status=503, text="\n".join(exporter.sources.errors) + "\n")

        return {"/metrics": metrics, "/signals": signals, "/healthz": healthz, "/readyz": readyz}
