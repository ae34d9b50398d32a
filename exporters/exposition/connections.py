"""The connections of an endpoint: how many, who makes room, who is past its time.

Each is accepted in a task of its own, so that a TLS handshake keeps nobody else waiting. When
all places are taken, whoever waits longest without ever having been answered makes room, then
whoever has been idle longest; so a flood of silent clients can't keep a scraper out. Only when
every place is being answered is a newcomer refused.
"""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Iterable
from typing import Any

from aiohttp import web

from vramscope.exporters.catalog import exporter as catalog
from vramscope.exporters.exposition.connection import Connection
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.exposition.limits import Limits

__all__ = ["CUT_REASONS", "Connections"]

log = logging.getLogger("vramscope.endpoint")

CUT_REASONS = ("evicted", "refused", "handshake", "timeout")
OUT_OF_SOMETHING = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
BREATH_S = 0.2
SHUTDOWN_TIMEOUT_S = 5.0
"""For the end of a TLS connection; a client need not answer it."""


class Connections:
    """Accepts connections and bounds them.

    Args:
        server: aiohttp's, which answers.
        limits: the bounds.
        context: what new connections are encrypted with now; None for not at all.
        options: of aiohttp's request handler.
    """

    def __init__(
        self,
        server: web.Server,
        limits: Limits,
        context: Callable[[], ssl.SSLContext | None],
        **options: Any,
    ) -> None:
        self._server = server
        self._limits = limits
        self._context = context
        self._options = options
        self._open: dict[Connection, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.cut_total = dict.fromkeys(CUT_REASONS, 0)
        """Connections that ended by our will, by reason."""

    def __len__(self) -> int:
        return len(self._open)

    def add_to(self, families: Families) -> None:
        """Add how many there are, and how many were cut; from any thread."""
        answering = sum(connection.answering for connection in tuple(self._open))
        waiting = max(len(self._open) - answering, 0)
        families.add(catalog.EXPORTER_CONNECTIONS, answering, "answering")
        families.add(catalog.EXPORTER_CONNECTIONS, waiting, "waiting")
        for reason, count in self.cut_total.items():
            families.add(catalog.EXPORTER_CONNECTIONS_CUT, count, reason)

    def start(self, listeners: Iterable[socket.socket]) -> None:
        """Accept on ``listeners`` until ``close``."""
        for listener in listeners:
            self._keep(asyncio.create_task(self._accept(listener)))
        self._keep(asyncio.create_task(self._watch()))

    async def close(self) -> None:
        """Stop accepting, and drop the connections that no request came on."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def cut_all(self) -> None:
        """Drop what is still connected."""
        for connection in list(self._open):
            connection.cut()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listener)
            except OSError as error:
                if error.errno not in OUT_OF_SOMETHING:
                    continue  # this client has gone already
                log.warning("can't accept connections: %s: one makes room", error.strerror)
                self._evict()
                await asyncio.sleep(BREATH_S)
                continue
            if len(self._open) >= self._limits.max_connections and not self._evict():
                self.cut_total["refused"] += 1
                accepted.close()
                continue
            connection = Connection(self._server, self._limits, self._forget, **self._options)
            self._open[connection] = None
            connection.greeting = asyncio.create_task(self._greet(connection, accepted))
            self._keep(connection.greeting)

    async def _greet(self, connection: Connection, accepted: socket.socket) -> None:
        """Make the connection, with its TLS handshake."""
        loop = asyncio.get_running_loop()
        context = self._context()
        tls: dict[str, Any] = {}
        if context is not None:
            tls = {
                "ssl": context,
                "ssl_handshake_timeout": self._limits.handshake_timeout_s,
                "ssl_shutdown_timeout": SHUTDOWN_TIMEOUT_S,
            }
        try:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.connect_accepted_socket(lambda: connection, accepted, **tls)
        except OSError:  # ssl.SSLError and timeouts are OSErrors
            self.cut_total["handshake"] += 1
            self._forget(connection)
            accepted.close()
        except asyncio.CancelledError:
            self._forget(connection)
            accepted.close()
            raise

    def _evict(self) -> bool:
        """Make room; return whether there was somebody to make it."""
        waiting = [connection for connection in self._open if not connection.answering]
        if not waiting:
            return False
        oldest = min(waiting, key=lambda waits: (waits.answered > 0, waits.since_s))
        self._cut(oldest, "evicted")
        return True

    async def _watch(self) -> None:
        """Cut off those past their time."""
        loop = asyncio.get_running_loop()
        limits = self._limits
        shortest_s = min(limits.head_timeout_s, limits.answer_timeout_s, limits.idle_timeout_s)
        while True:
            await asyncio.sleep(min(1.0, shortest_s / 4))
            now_s = loop.time()
            for connection in [one for one in self._open if one.due_s <= now_s]:
                self._cut(connection, "timeout")

    def _cut(self, connection: Connection, reason: str) -> None:
        self.cut_total[reason] += 1
        self._forget(connection)
        connection.cut()

    def _forget(self, connection: Connection) -> None:
        self._open.pop(connection, None)

    def _keep(self, task: asyncio.Task[None]) -> None:
        """Hold a task, which the loop doesn't, until it ends."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
