"""The endpoint over real sockets: what a scraper gets."""

import asyncio
import gzip
import socket
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from vramscope.exporters.catalog import Metric
from vramscope.exporters.errors import VramscopeError
from vramscope.exporters.exposition.endpoint import serve
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.exposition.rendered import Rendered, Renderer

PROMETHEUS_3_ACCEPT = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)

FAMILIES = Families()
FAMILIES.add(Metric("vramscope_x_bytes_total", "counter", "bytes", "X.", ("gpu",)), 5e9, "0")
REGISTRY = CollectorRegistry(auto_describe=False)
REGISTRY.register(FAMILIES)


async def metrics() -> Rendered:
    return Renderer().render(FAMILIES)


ROUTES = {"/metrics": metrics}
LOCAL: dict[str, Any] = {"host": "127.0.0.1", "port": 0}


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "text/plain; version=0.0.4"),
        ("*/*", "text/plain; version=0.0.4"),
        ("text/plain;version=0.0.4", "text/plain; version=0.0.4"),
        ("application/openmetrics-text", "application/openmetrics-text; version=1.0.0"),
        (PROMETHEUS_3_ACCEPT, "application/openmetrics-text; version=1.0.0"),
        ("application/openmetrics-text; version=0.0.1", "text/plain; version=0.0.4"),
        ("application/openmetrics-text;q=0.1,text/plain;q=0.9", "text/plain; version=0.0.4"),
        ("application/openmetrics-text;q=0", "text/plain; version=0.0.4"),
        ("application/openmetrics-text;q=x,;;=,", "text/plain; version=0.0.4"),
    ],
)
async def test_format_is_what_the_client_ranks_highest(
    connect: Any, accept: str, kind: str
) -> None:
    async with serve(ROUTES, **LOCAL) as endpoint, connect(endpoint.url) as client:
        answer = await client.ask(Accept=accept)
    assert (answer.status, answer.headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
    generate = generate_openmetrics if "openmetrics" in kind else generate_latest
    assert answer.body == generate(REGISTRY)
    assert answer.headers["Vary"] == "Accept, Accept-Encoding"


@pytest.mark.parametrize(
    ("encoding", "gzipped"),
    [("gzip", True), ("deflate, gzip;q=0.5", True), ("*", True), ("gzip;q=0", False), ("", False)],
)
async def test_gzip_where_the_client_takes_it(connect: Any, encoding: str, gzipped: bool) -> None:
    async with serve(ROUTES, **LOCAL) as endpoint, connect(endpoint.url) as client:
        answer = await client.ask(Accept_Encoding=encoding)
    assert answer.headers.get("Content-Encoding") == ("gzip" if gzipped else None)
    body = gzip.decompress(answer.body) if gzipped else answer.body
    assert body == generate_latest(REGISTRY)


async def test_head_is_get_without_the_body(connect: Any) -> None:
    async with serve(ROUTES, **LOCAL) as endpoint, connect(endpoint.url) as client:
        head = await client.ask(method="HEAD")
        got = await client.ask()  # on the same connection: no body was sent in between
    assert head.status == got.status == 200
    assert head.headers["Content-Length"] == got.headers["Content-Length"] == str(len(got.body))
    assert not head.body


async def test_other_paths_and_methods_are_refused(connect: Any) -> None:
    async with serve(ROUTES, **LOCAL) as endpoint, connect(endpoint.url) as client:
        nothing = await client.ask("/nothing")
        posted = await client.ask(method="POST", Content_Length="0")
    assert nothing.status == 404
    assert (posted.status, posted.headers["Allow"]) == (405, "GET,HEAD")
    assert nothing.headers["Server"] == "vramscope"


async def test_a_page_that_fails_is_500_and_the_others_go_on(connect: Any) -> None:
    async def broken() -> web.Response:
        raise RuntimeError("no")

    async with serve({**ROUTES, "/broken": broken}, **LOCAL) as endpoint:
        async with connect(endpoint.url) as client:
            assert (await client.ask("/broken")).status == 500
        async with connect(endpoint.url) as client:
            assert (await client.ask()).status == 200


async def test_answer_under_way_is_finished_at_the_end(connect: Any) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> web.Response:
        asked.set()
        await go_on.wait()
        return web.Response(text="done\n")

    serving = serve({"/slow": slow}, **LOCAL)
    endpoint = await serving.__aenter__()
    async with connect(endpoint.url) as client, connect(endpoint.url) as idle:
        asking = asyncio.create_task(client.ask("/slow"))
        await asked.wait()
        ending = asyncio.create_task(serving.__aexit__(None, None, None))
        assert await idle.closed() == b""
        go_on.set()
        assert (await asking).body == b"done\n"
        await ending


async def test_port_in_use_says_what_to_do() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(VramscopeError, match=f"can't listen on 127.0.0.1:{port}: .*--listen"):
            async with serve(ROUTES, host="127.0.0.1", port=port):
                pass


async def test_address_of_another_host_says_so() -> None:
    with pytest.raises(VramscopeError, match=r"can't listen on 192\.0\.2\.1:0: .*--listen"):
        async with serve(ROUTES, host="192.0.2.1", port=0):
            pass


def test_serves_on_uvloop_too(connect: Any, run_on_uvloop: Callable[..., Any]) -> None:
    async def scrape() -> bytes:
        async with serve(ROUTES, **LOCAL) as endpoint, connect(endpoint.url) as client:
            body: bytes = (await client.ask()).body
            return body

    assert run_on_uvloop(scrape()) == generate_latest(REGISTRY)
