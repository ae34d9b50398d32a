"""The exporter's listener: pages over HTTP or HTTPS, for clients that may be slow or hostile."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import cast

from aiohttp import web
from aiohttp.typedefs import Handler

from vramscope.exporters.errors import VramscopeError
from vramscope.exporters.exposition.connection import Connection
from vramscope.exporters.exposition.connections import Connections
from vramscope.exporters.exposition.http_log import HttpLog
from vramscope.exporters.exposition.limits import Limits
from vramscope.exporters.exposition.pages import Page, pages
from vramscope.exporters.exposition.web_in_use import CHECK_FILES_S, WebInUse

__all__ = ["SWITCH_INTERVAL_S", "Endpoint", "serve"]

log = logging.getLogger("vramscope.endpoint")

BACKLOG = 512
SWITCH_INTERVAL_S = 0.0001
"""For ``sys.setswitchinterval`` in a process that refreshes in a thread: an answer takes the
interpreter's lock several times, and at Python's 5 ms waits for a refresh as often."""
DRAIN_S = 5.0
"""For answers under way when the endpoint closes."""


class Endpoint:
    """Serves pages; ``serve`` makes one.

    Args:
        web_in_use: the web configuration.
        routes: page by path.
        limits: bounds on clients.
    """

    def __init__(self, web_in_use: WebInUse, routes: Mapping[str, Page], limits: Limits) -> None:
        self._web = web_in_use
        self._limits = limits
        self._reloading: asyncio.Task[None] | None = None
        self._runner = web.AppRunner(
            pages(routes, middlewares=[self._answer]),
            access_log=None,
            shutdown_timeout=DRAIN_S,
        )
        self._listeners: list[socket.socket] = []
        self.connections: Connections

    @property
    def url(self) -> str:
        """Where it listens; the port may have been picked."""
        host, port = self._listeners[0].getsockname()[:2]
        scheme = "http" if self._web.context is None else "https"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    async def start(self, host: str, port: int) -> None:
        """Listen.

        Raises:
            VramscopeError: the address can't be had.
        """
        try:
            self._listeners = await _listen(host, port)
        except OSError as error:
            raise VramscopeError(
                f"vramscope export: can't listen on {host}:{port}: {error.strerror}: "
                "stop what listens there, or choose another with --listen HOST:PORT"
            ) from error
        await self._runner.setup()
        self.connections = Connections(
            cast("web.Server", self._runner.server),
            self._limits,
            lambda: self._web.context,
            logger=HttpLog(log),
            access_log=None,
        )
        self.connections.start(self._listeners)

    async def close(self) -> None:
        """Stop listening, finish the answers under way, drop the rest."""
        if self._reloading is not None:
            await self._reloading
        await self.connections.close()
        for listener in self._listeners:
            listener.close()
        await self._runner.cleanup()
        self.connections.cut_all()
        self._web.close()

    def reload_soon(self) -> None:
        """Reload the web configuration; what a handler of SIGHUP calls."""
        if self._reloading is None or self._reloading.done():
            self._reloading = asyncio.create_task(self.reload())

    async def reload(self) -> None:
        """Take over the web configuration as it is now; keep the old one if it is broken.

        Connections stay; new ones get the new certificate, and every request is checked against
        the new users.
        """
        await self._web.reload()

    @web.middleware
    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer one request within the connection's deadlines."""
        connection = cast("Connection", request.protocol)
        connection.begin_answer()
        try:
            response = await self._respond(request, handler)
            response.headers.update(self._web.config.headers)
            response.headers["Server"] = "vramscope"
            with contextlib.suppress(ConnectionError):  # the client has gone: nobody to tell
                await response.prepare(request)
                await response.write_eof()
        finally:
            connection.end_answer()
        return response

    async def _respond(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not await self._web.allow(request.headers.get("Authorization", "")):
            challenge = {"WWW-Authenticate": 'Basic realm="vramscope", charset="UTF-8"'}
            return web.Response(status=401, text="want a user and password\n", headers=challenge)
        try:
            return await handler(request)
        except web.HTTPException as refusal:  # no such page, no such method
            response = web.Response(status=refusal.status, text=f"{refusal.reason}\n")
            if "Allow" in refusal.headers:
                response.headers["Allow"] = refusal.headers["Allow"]
            return response


@contextlib.asynccontextmanager
async def serve(
    routes: Mapping[str, Page],
    *,
    host: str,
    port: int,
    web_config_file: Path | None = None,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    check_files_s: float = CHECK_FILES_S,
) -> AsyncIterator[Endpoint]:
    """Serve ``routes`` while the context lasts.

    Args:
        routes: page by path.
        host: where to listen: a name or an address.
        port: 0 picks a free one.
        web_config_file: exporter-toolkit's web configuration.
        limits: bounds on clients.
        check_files_s: how often it is looked whether the web configuration's files changed.

    Raises:
        VramscopeError: the address can't be had, or the web configuration has mistakes.
    """
    web_in_use = await asyncio.to_thread(WebInUse, web_config_file)
    endpoint = Endpoint(web_in_use, routes, limits)
    await endpoint.start(host, port)
    following = asyncio.create_task(web_in_use.follow(check_files_s))
    try:
        yield endpoint
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await endpoint.close()


async def _listen(host: str, port: int) -> list[socket.socket]:
    """Return a listening socket for each address of ``host``, all on one port.

    Raises:
        OSError: no such host, or an address is taken.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    listeners: list[socket.socket] = []
    try:
        for family, _, _, _, address in dict.fromkeys(found):
            listener = socket.socket(family, socket.SOCK_STREAM)
            listeners.append(listener)
            listener.setblocking(False)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            chosen = port or (listeners[0].getsockname()[1] if len(listeners) > 1 else 0)
            listener.bind((address[0], chosen, *address[2:]))
            listener.listen(BACKLOG)
    except OSError:
        for listener in listeners:
            listener.close()
        raise
    return listeners
