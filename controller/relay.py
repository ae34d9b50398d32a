"""Passes one request to one engine and its answer back, as it comes."""

import io
import re
from collections.abc import Callable
from dataclasses import dataclass

import aiohttp
from aiohttp import web
from yarl import URL

from vramscope.controller.headers import to_client, to_engine
from vramscope.controller.openai_shape import error_event, error_response

__all__ = ["NotConnectedError", "Relayed", "client_session", "relay"]

CONNECT_TIMEOUT_S = 5.0
IDLE_CONNECTION_S = 2.0
"""vLLM's server closes a connection that is idle for 5 s. Ours are given up earlier, so that
no request is ever sent into one that the engine is just closing."""

ERROR_EVENT = re.compile(rb'(?:^|\n)data: \{"error"')
"""How vLLM ends a stream whose engine core died: inside an answer of status 200."""


class NotConnectedError(Exception):
    """The engine took no connection: nothing was sent, so another one may be asked."""


@dataclass(frozen=True, slots=True)
class Relayed:
    """An answer that was passed on, or is about to be.

    Attributes:
        response: for aiohttp.
        outcome: completed, client_error, engine_error or cancelled.
    """

    response: web.StreamResponse
    outcome: str


def client_session() -> aiohttp.ClientSession:
    """Return a session for talking to engines: no limits, no cookies, bytes as they are."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_CONNECTION_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        # No total: an answer takes what it takes. The client's abort is what ends it early.
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
        auto_decompress=False,
        skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
    )


async def relay(
    http: web.Request,
    body: bytes,
    *,
    session: aiohttp.ClientSession,
    url: str,
    request_id: str,
    first_byte: Callable[[], None],
) -> Relayed:
    """Send a request to an engine, once, and pass its answer on.

    A stream is passed on chunk by chunk. Any other answer is short and is read whole, so
    that an engine that dies in the middle of it becomes a clean 502.

    Being cancelled closes the engine's connection, on which vLLM aborts the request.

    Args:
        http: the client's request.
        body: its body, already read.
        session: see ``client_session``.
        url: the engine's.
        request_id: goes both ways.
        first_byte: called when the first byte of a stream has come.

    Raises:
        NotConnectedError: the engine took no connection.
    """
    target = URL(f"{url}{http.rel_url.raw_path_qs}", encoded=True)
    headers = to_engine(http.headers, request_id)
    # As a file it is written in pieces: a large one does not hold up the other streams.
    try:
        async with session.post(
            target, data=io.BytesIO(body), headers=headers, allow_redirects=False
        ) as answer:
            if answer.content_type == "text/event-stream":
                return await _pass_stream(http, answer, request_id, first_byte)
            content = await answer.read()
            response = web.Response(
                status=answer.status, headers=to_client(answer.headers, request_id), body=content
            )
            return Relayed(response, _outcome(answer.status))
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise NotConnectedError from error
    except aiohttp.ClientError:
        message = "the engine died before it had answered; it may have begun to"
        return Relayed(error_response(502, message, "engine_died"), "engine_error")


async def _pass_stream(
    http: web.Request,
    answer: aiohttp.ClientResponse,
    request_id: str,
    first_byte: Callable[[], None],
) -> Relayed:
    response = web.StreamResponse(
        status=answer.status, headers=to_client(answer.headers, request_id)
    )
    outcome = _outcome(answer.status)
    try:
        await response.prepare(http)
        first = True
        while True:
            # Errors of the two directions share classes, so each read is caught apart.
            try:
                chunk = await answer.content.readany()
            except (aiohttp.ClientError, ConnectionError):
                await response.write(error_event("the engine died in the middle of its answer"))
                outcome = "engine_error"
                break
            if not chunk:
                break
            if first:
                first_byte()
                first = False
            if ERROR_EVENT.search(chunk):
                outcome = "engine_error"
            await response.write(chunk)
        await response.write_eof()
    except ConnectionError:  # writing to a client that is gone
        return Relayed(response, "cancelled")
    return Relayed(response, outcome)


def _outcome(status: int) -> str:
    if status < 400:
        return "completed"
    return "client_error" if status < 500 else "engine_error"
