"""Gets a page over HTTP without hurting who serves it or who waits for it."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import aiohttp

from vramscope.exporters.errors import SourceUnavailableError

__all__ = ["Body", "client", "fetch"]

CONNECT_TIMEOUT_S = 2.0
TOTAL_TIMEOUT_S = 5.0
MOST_BYTES = 4 * 1024 * 1024
"""A page of one engine has about 50 KB, and 40 KB more for each data-parallel rank."""

ACCEPT = "application/openmetrics-text;q=0.5,text/plain;version=1.0.0;q=0.9,text/plain;q=0.8"
FORMATS = ("text/plain", "application/openmetrics-text")


class Body(NamedTuple):
    """A page as it came."""

    content_type: str
    data: bytes


@asynccontextmanager
async def client(
    total_timeout_s: float = TOTAL_TIMEOUT_S, connect_timeout_s: float = CONNECT_TIMEOUT_S
) -> AsyncIterator[aiohttp.ClientSession]:
    """Open a client: one connection a server, kept; nothing is decompressed."""
    timeout = aiohttp.ClientTimeout(total=total_timeout_s, sock_connect=connect_timeout_s)
    async with aiohttp.ClientSession(
        timeout=timeout,
        connector=aiohttp.TCPConnector(limit=0, limit_per_host=1),
        headers={"Accept": ACCEPT, "Accept-Encoding": "identity", "User-Agent": "vramscope"},
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,  # a small body may be a huge page
    ) as session:
        yield session


async def fetch(session: aiohttp.ClientSession, url: str) -> Body:
    """Return the page at ``url``.

    Raises:
        SourceUnavailableError: none came, or not one of metrics; says which and what to do.
    """
    try:
        async with session.get(url, allow_redirects=False) as answer:
            _check(answer)
            return Body(answer.content_type, await _read(answer))
    except TimeoutError as error:
        raise SourceUnavailableError(
            f"no page within {session.timeout.total:g} s "
            f"({session.timeout.sock_connect:g} s to connect)"
        ) from error
    except (ssl.SSLError, aiohttp.ClientSSLError) as error:
        raise SourceUnavailableError(
            f"TLS failed: {error}: want a certificate that this host trusts (SSL_CERT_FILE)"
        ) from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise SourceUnavailableError(str(error) or type(error).__name__) from error


def _check(answer: aiohttp.ClientResponse) -> None:
    """Refuse an answer that is no metrics page, by its head."""
    status = answer.status
    if 300 <= status < 400:
        target = answer.headers.get("Location", "elsewhere")
        raise SourceUnavailableError(f"sends us to {target} ({status}): give the final address")
    if status == 404:
        raise SourceUnavailableError("no such page (404): vLLM's is at /metrics")
    if status != 200:
        raise SourceUnavailableError(f"answered {status} {answer.reason}")
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise SourceUnavailableError("compressed, though we asked for it as it is")
    if answer.content_type not in FORMATS:
        raise SourceUnavailableError(f"a page of {answer.content_type}: want metrics as text/plain")


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    data = bytearray()
    async for chunk in answer.content.iter_any():
        data += chunk
        if len(data) > MOST_BYTES:
            raise SourceUnavailableError(
                f"more than {MOST_BYTES // 2**20} MiB: not an engine's page"
            )
    return bytes(data)
