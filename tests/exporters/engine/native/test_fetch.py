"""What a page's server may do to us, and what is then said of it."""

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from vramscope.exporters.engine.native import fetch as module
from vramscope.exporters.engine.native.fetch import client, fetch
from vramscope.exporters.errors import SourceUnavailableError

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
Serve = Callable[[Callable[[web.Request], Awaitable[web.StreamResponse]]], Awaitable[str]]


async def refusal(url: str, **timeouts: float) -> str:
    """Return why no page came."""
    async with client(**timeouts) as session:
        with pytest.raises(SourceUnavailableError) as raised:
            await fetch(session, url)
    return str(raised.value)


async def test_page_comes_as_it_is(serve: Serve) -> None:
    asked: list[web.Request] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append(request)
        return web.Response(text="x 1\n")

    url = await serve(handle)
    async with client() as session:
        assert await fetch(session, url) == ("text/plain", b"x 1\n")
        await fetch(session, url)
    assert asked[0].headers["Accept-Encoding"] == "identity"
    assert len({request.transport for request in asked}) == 1, "one connection, kept"


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ({"status": 404}, "404"),
        ({"status": 503, "reason": "starting"}, "answered 503 starting"),
        ({"status": 302, "headers": {"Location": "/elsewhere"}}, "sends us to /elsewhere"),
        ({"text": "<html>", "content_type": "text/html"}, "a page of text/html"),
        ({"body": b"\x1f\x8b", "headers": {"Content-Encoding": "gzip"}}, "compressed"),
        ({"text": "x" * (4 * 2**20 + 1)}, "more than 4 MiB"),
    ],
    ids=["404", "503", "redirect", "html", "compressed", "huge"],
)
async def test_answer_that_is_no_page(serve: Serve, answer: dict[str, Any], complaint: str) -> None:
    async def handle(_: web.Request) -> web.Response:
        return web.Response(**answer)

    assert complaint in await refusal(await serve(handle))


async def test_redirect_is_not_followed(serve: Serve) -> None:
    reached: list[str] = []

    async def target(request: web.Request) -> web.Response:
        reached.append(request.path)
        return web.Response(text="x 1\n")

    elsewhere = await serve(target)

    async def handle(_: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": elsewhere})

    assert elsewhere in await refusal(await serve(handle))
    assert reached == []


async def test_server_that_never_answers_is_given_up(serve: Serve) -> None:
    async def handle(_: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    said = await refusal(await serve(handle), total_timeout_s=0.05)
    assert "no page within 0.05 s" in said


async def test_endless_page_is_cut(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 2**20)

    async def handle(request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await stream.prepare(request)
        while True:
            await stream.write(b"x 1\n" * 1000)

    assert "more than 1 MiB" in await refusal(await serve(handle))


@pytest.mark.parametrize(
    ("sent", "complaint"),
    [
        (b"nonsense\r\n\r\n", "(?i)bad"),
        (b"", "(?i)disconnected"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nx",
            "(?i)payload",
        ),
    ],
    ids=["no-http", "closed", "cut-off"],
)
async def test_server_that_speaks_no_http(sent: bytes, complaint: str) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        said = await refusal(f"http://127.0.0.1:{port}/metrics")
    assert re.search(complaint, said), said


async def test_nobody_there(free_port: Callable[[], int]) -> None:
    said = await refusal(f"http://127.0.0.1:{free_port()}/metrics")
    assert "Connect call failed" in said


async def test_certificate_that_nobody_signed(tmp_path: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*self_signed(tmp_path))
    server = await asyncio.start_server(lambda _, w: w.close(), "127.0.0.1", 0, ssl=context)
    async with server:
        port = server.sockets[0].getsockname()[1]
        said = await refusal(f"https://127.0.0.1:{port}/metrics")
    assert "TLS failed" in said
    assert "SSL_CERT_FILE" in said


def self_signed(folder: Path) -> tuple[Path, Path]:
    """Return the files of a certificate and its key."""
    import datetime as dt

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "nobody")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .sign(key, hashes.SHA256())
    )
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files
