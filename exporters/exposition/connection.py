"""One client's connection: what it is waiting for, and until when it may."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from aiohttp import web

from vramscope.exporters.exposition.limits import Limits

__all__ = ["Connection"]


class Connection(web.RequestHandler):
    """aiohttp's connection, with a deadline for each thing that a client can be slow at.

    It only notes the deadline; who keeps the connections cuts off those that are past it.

    Args:
        server: aiohttp's, which answers.
        limits: its bounds.
        lost: told once when the connection is gone.
        options: of aiohttp's request handler.
    """

    __slots__ = (
        "_flushed",
        "_idle",
        "_limits",
        "_lost",
        "_unread_bytes",
        "answered",
        "answering",
        "due_s",
        "greeting",
        "since_s",
    )

    def __init__(
        self,
        server: web.Server,
        limits: Limits,
        lost: Callable[["Connection"], None],
        **options: Any,
    ) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(
            server,
            loop=loop,
            keepalive_timeout=limits.idle_timeout_s,
            lingering_time=1.0,
            max_line_size=limits.line_bytes,
            max_field_size=limits.line_bytes,
            **options,
        )
        self._limits = limits
        self._lost = lost
        self._flushed = True  # the client has taken all that was written
        self._idle = False  # an answer is out, and no byte of the next request is in
        self._unread_bytes = 0
        self.greeting: asyncio.Task[None] | None = None
        """Accepts the connection: the TLS handshake."""
        self.answering = False
        self.answered = 0
        """Requests that got their answer."""
        self.since_s = loop.time()
        """When it began to wait for what it waits for, on the loop's clock."""
        self.due_s = self.since_s + limits.handshake_timeout_s
        """When it is cut off unless that has come."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to wait for a request."""
        # Told of every byte that the client has not taken, so that a slow reader shows.
        cast("asyncio.Transport", transport).set_write_buffer_limits(high=0)
        super().connection_made(transport)
        self._wait(self._limits.head_timeout_s)

    def data_received(self, data: bytes) -> None:
        """Take in bytes, up to a bound."""
        self._unread_bytes += len(data)
        if self._unread_bytes > self._limits.head_bytes:
            self.cut()
            return
        if self._idle:
            self._idle = False
            self._wait(self._limits.head_timeout_s)
        super().data_received(data)

    def pause_writing(self) -> None:
        """Note that the client is behind."""
        self._flushed = False
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that the client has taken all."""
        self._flushed = True
        super().resume_writing()
        if not self.answering:
            self._rest()

    def begin_answer(self) -> None:
        """Note that a request's headers are in."""
        self.answering = True
        self._idle = False
        self._unread_bytes = 0
        self._wait(self._limits.answer_timeout_s)

    def end_answer(self) -> None:
        """Note that the answer is written; the client may not have taken it yet."""
        self.answering = False
        self.answered += 1
        if self._flushed:
            self._rest()

    def _rest(self) -> None:
        self._idle = True
        self._wait(self._limits.idle_timeout_s)

    def _wait(self, timeout_s: float) -> None:
        self.since_s = asyncio.get_running_loop().time()
        self.due_s = self.since_s + timeout_s

    def cut(self) -> None:
        """Drop the connection now, whatever is under way."""
        if self.transport is not None:
            self.transport.abort()
        elif self.greeting is not None:
            self.greeting.cancel()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Tell who keeps the connections."""
        super().connection_lost(exc)
        self._lost(self)
