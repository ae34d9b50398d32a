"""Scrapes as Prometheus does, with a clock."""

import contextlib
import socket
import ssl
import time
from collections.abc import Iterator

__all__ = ["Scraper", "connected"]

REQUEST = (
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text;"
    b"version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.2\r\n"
    b"Accept-Encoding: gzip\r\n\r\n"
)


class Scraper:
    """One kept connection, as Prometheus keeps one for each target.

    Args:
        url: of the endpoint.
        context: for HTTPS.
    """

    def __init__(self, url: str, context: ssl.SSLContext | None = None) -> None:
        host, port = url.split("//")[1].split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            self._socket = context.wrap_socket(self._socket, server_hostname=host)
        self._reader = self._socket.makefile("rb")

    def scrape_s(self) -> float:
        """Scrape once; return the time from the request to the last byte."""
        start_s = time.perf_counter()
        self._socket.sendall(REQUEST)
        size = 0
        status = self._reader.readline()
        while line := self._reader.readline().strip().lower():
            if line.startswith(b"content-length:"):
                size = int(line.partition(b":")[2])
        body = self._reader.read(size)
        took_s = time.perf_counter() - start_s
        if b" 200 " not in status or not body.startswith(b"\x1f\x8b"):
            raise RuntimeError(f"want a gzipped page, got {status!r} and {body[:80]!r}")
        return took_s

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()
        self._socket.close()


@contextlib.contextmanager
def connected(url: str, count: int) -> Iterator[None]:
    """Hold ``count`` connections on which nothing is said."""
    host, port = url.split("//")[1].split(":")
    held = [socket.create_connection((host, int(port)), timeout=30) for _ in range(count)]
    try:
        yield
    finally:
        for one in held:
            one.close()
