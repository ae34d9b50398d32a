"""Clients that are slow, silent, many or broken: each is cut off, and nobody else notices."""

import asyncio
import logging
import socket
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import web

from vramscope.exporters.exposition.endpoint import Endpoint, serve
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.exposition.limits import Limits
from vramscope.exporters.exposition.rendered import Renderer

LOCAL: dict[str, Any] = {"host": "127.0.0.1", "port": 0}
SHORT_S = 0.2


async def page() -> web.Response:
    return web.Response(text="here\n")


async def big() -> web.Response:
    return web.Response(body=bytes(64 << 20))  # more than the sockets' buffers take


ROUTES = {"/page": page, "/big": big}


async def scrapes(connect: Any, endpoint: Endpoint) -> bool:
    async with connect(endpoint.url) as scraper:
        return bool((await scraper.ask("/page")).body == b"here\n")


@pytest.mark.parametrize("sent", [b"", b"GET /pa", b"GET /page HTTP/1.1\r\nHost: x\r\n"])
async def test_client_that_does_not_finish_its_request_is_cut_off(
    connect: Any, sent: bytes
) -> None:
    limits = Limits(head_timeout_s=SHORT_S)
    async with serve(ROUTES, **LOCAL, limits=limits) as endpoint:
        async with connect(endpoint.url) as slow:
            await slow.send(sent)
            assert await scrapes(connect, endpoint)
            assert await slow.closed() == b""
        assert endpoint.connections.cut_total["timeout"] == 1


async def test_client_that_drips_headers_gains_no_time(connect: Any) -> None:
    limits = Limits(head_timeout_s=SHORT_S)
    async with serve(ROUTES, **LOCAL, limits=limits) as endpoint, connect(endpoint.url) as slow:
        closed = asyncio.create_task(slow.closed())
        await slow.send(b"GET /page HTTP/1.1\r\n")
        while not closed.done():
            slow.writer.write(b"X: y\r\n")
            await asyncio.wait({closed}, timeout=SHORT_S / 20)
        assert await closed == b""
        assert endpoint.connections.cut_total["timeout"] == 1


async def test_client_that_does_not_take_its_answer_is_cut_off(connect: Any, until: Any) -> None:
    limits = Limits(answer_timeout_s=SHORT_S)
    async with serve(ROUTES, **LOCAL, limits=limits) as endpoint:
        async with connect(endpoint.url, limit=1024) as slow:  # reads no more than that
            await slow.send(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
            assert await scrapes(connect, endpoint)
            await until(lambda: not len(endpoint.connections))
        assert endpoint.connections.cut_total["timeout"] == 1


async def test_idle_connection_is_kept_for_the_next_scrape_but_not_for_ever(connect: Any) -> None:
    limits = Limits(idle_timeout_s=SHORT_S)
    async with serve(ROUTES, **LOCAL, limits=limits) as endpoint, connect(endpoint.url) as scraper:
        assert (await scraper.ask("/page")).status == 200
        assert (await scraper.ask("/page")).status == 200
        assert await scraper.closed() == b""


async def test_silent_clients_make_room_for_a_scraper(connect: Any) -> None:
    limits = Limits(max_connections=4)
    async with AsyncExitStack() as stack:
        endpoint = await stack.enter_async_context(serve(ROUTES, **LOCAL, limits=limits))
        scraper = await stack.enter_async_context(connect(endpoint.url))
        assert (await scraper.ask("/page")).status == 200
        silent = [await stack.enter_async_context(connect(endpoint.url)) for _ in range(4)]
        assert await silent[0].closed() == b""  # the oldest that never asked, not the scraper
        assert (await scraper.ask("/page")).status == 200
        assert await scrapes(connect, endpoint)
        assert await silent[1].closed() == b""
        assert len(endpoint.connections) <= 4
        families = Families()
        endpoint.connections.add_to(families)
        text = Renderer().render(families).page().decode()
        assert 'vramscope_exporter_connections_cut_total{reason="evicted"} 2.0' in text
        assert 'vramscope_exporter_connections{state="answering"} 0.0' in text


async def test_newcomer_is_refused_when_all_places_are_being_answered(connect: Any) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> web.Response:
        asked.set()
        await go_on.wait()
        return web.Response(text="done\n")

    limits = Limits(max_connections=1)
    async with serve({"/slow": slow}, **LOCAL, limits=limits) as endpoint:
        async with connect(endpoint.url) as first:
            asking = asyncio.create_task(first.ask("/slow"))
            await asked.wait()
            async with connect(endpoint.url) as second:
                assert await second.closed() == b""
            go_on.set()
            assert (await asking).body == b"done\n"
        assert endpoint.connections.cut_total["refused"] == 1


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64) + b"\r\n\r\n",  # TLS hello
        b"GET\r\n\r\n",
        b"GET /page HTTP/9.9\r\n\r\n",
        b"GET /page HTTP/1.1\r\nbad header\r\n\r\n",
        b"GET /page HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /page HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /page HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 9000 + b"\r\n\r\n",
        b"GET /page HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 200 + b"\r\n",
    ],
    ids=["tls", "no-path", "version", "header", "length", "smuggle", "line", "field", "headers"],
)
async def test_malformed_request_is_400_and_quiet(
    connect: Any, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    with caplog.at_level(logging.INFO):
        async with serve(ROUTES, **LOCAL) as endpoint:
            async with connect(endpoint.url) as broken:
                await broken.send(sent)
                assert (await broken.closed()).startswith((b"HTTP/1.0 400", b"HTTP/1.1 400"))
            assert await scrapes(connect, endpoint)
    assert not caplog.records


async def test_flood_of_bytes_is_cut_off(connect: Any) -> None:
    async with serve(ROUTES, **LOCAL) as endpoint:
        async with connect(endpoint.url) as flood:
            await flood.send(b"POST /page HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n")
            with pytest.raises(OSError):  # noqa: PT011 (reset or broken pipe, as the kernel likes)
                await flood.send(bytes(1 << 30))
        assert await scrapes(connect, endpoint)


async def test_client_that_leaves_before_its_answer_is_no_error(
    connect: Any, until: Any, caplog: pytest.LogCaptureFixture
) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> web.Response:
        asked.set()
        await go_on.wait()
        return web.Response(text="done\n")

    routes = {**ROUTES, "/slow": slow}
    with caplog.at_level(logging.INFO):
        async with serve(routes, **LOCAL) as endpoint:
            host, port = endpoint.url.removeprefix("http://").split(":")
            rude = socket.create_connection((host, int(port)))
            rude.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            await asked.wait()
            rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            rude.close()  # a reset
            await until(lambda: not len(endpoint.connections))
            go_on.set()
            assert await scrapes(connect, endpoint)
    assert not caplog.records
