"""HTTPS, clients' certificates, passwords, and reloading all of them while scraped."""

import asyncio
import base64
import logging
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import bcrypt
import pytest
from aiohttp import web

from vramscope.exporters.errors import VramscopeError
from vramscope.exporters.exposition.endpoint import serve
from vramscope.exporters.exposition.limits import Limits

LOCAL: dict[str, Any] = {"host": "127.0.0.1", "port": 0}
Trusting = Callable[..., ssl.SSLContext]


async def page() -> web.Response:
    return web.Response(text="here\n")


ROUTES = {"/metrics": page}


def tls(files: tuple[Path, Path], *more: str) -> str:
    lines = [f"cert_file: {files[0]}", f"key_file: {files[1]}", *more]
    return "tls_server_config:\n" + "".join(f"  {line}\n" for line in lines)


def hashed(password: str) -> str:
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()


def basic(credentials: str) -> str:
    return "Basic " + base64.b64encode(credentials.encode()).decode()


async def test_https(connect: Any, authority: Any, trusting: Trusting, web_config: Any) -> None:
    file = web_config(tls(authority.issue("server")))
    async with serve(ROUTES, **LOCAL, web_config_file=file) as endpoint:
        assert endpoint.url.startswith("https://127.0.0.1:")
        async with connect(endpoint.url, trusting()) as client:
            answer = await client.ask()
    assert (answer.status, answer.body, answer.certificate) == (200, b"here\n", "server")


async def test_idle_handshakes_keep_nobody_waiting(
    connect: Any, authority: Any, trusting: Trusting, web_config: Any
) -> None:
    file = web_config(tls(authority.issue("server")))
    async with AsyncExitStack() as stack:
        endpoint = await stack.enter_async_context(serve(ROUTES, **LOCAL, web_config_file=file))
        for _ in range(20):
            await stack.enter_async_context(connect(endpoint.url))  # says nothing
        client = await stack.enter_async_context(connect(endpoint.url, trusting()))
        assert (await client.ask()).status == 200
        assert len(endpoint.connections) == 21


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01", b"GET /metrics HTTP/1.1\r\n\r\n"])
async def test_handshake_that_fails_or_takes_too_long_is_cut_off(
    connect: Any, authority: Any, trusting: Trusting, web_config: Any, sent: bytes
) -> None:
    file = web_config(tls(authority.issue("server")))
    limits = Limits(handshake_timeout_s=0.3)
    async with serve(ROUTES, **LOCAL, web_config_file=file, limits=limits) as endpoint:
        async with connect(endpoint.url) as broken:
            await broken.send(sent)
            await broken.closed()
        async with connect(endpoint.url, trusting()) as client:
            assert (await client.ask()).status == 200
        cut = endpoint.connections.cut_total
        assert cut["handshake"] + cut["timeout"] == 1


@pytest.mark.parametrize(
    ("client_auth", "bare_client_served"),
    [("RequireAndVerifyClientCert", False), ("VerifyClientCertIfGiven", True)],
)
async def test_clients_certificate(
    connect: Any,
    authority: Any,
    trusting: Trusting,
    web_config: Any,
    client_auth: str,
    bare_client_served: bool,
) -> None:
    mutual = (f"client_ca_file: {authority.file}", f"client_auth_type: {client_auth}")
    file = web_config(tls(authority.issue("server"), *mutual))
    async with serve(ROUTES, **LOCAL, web_config_file=file) as endpoint:
        async with connect(endpoint.url, trusting(authority.issue("client"))) as client:
            assert (await client.ask()).status == 200
        try:
            async with connect(endpoint.url, trusting()) as client:
                served = (await client.ask()).status == 200
        except (OSError, asyncio.IncompleteReadError):
            served = False
        assert served is bare_client_served


async def test_older_tls_than_asked_for_is_refused(
    connect: Any, authority: Any, trusting: Trusting, web_config: Any
) -> None:
    file = web_config(tls(authority.issue("server"), "min_version: TLS13"))
    old = trusting()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    async with serve(ROUTES, **LOCAL, web_config_file=file) as endpoint:
        with pytest.raises(OSError):  # noqa: PT011 (asyncio drops the alert that says why)
            async with connect(endpoint.url, old):
                pass
        async with connect(endpoint.url, trusting()) as client:
            assert (await client.ask()).status == 200
        assert endpoint.connections.cut_total["handshake"] == 1


async def test_cipher_suites_are_those_of_the_file(
    connect: Any, authority: Any, trusting: Trusting, web_config: Any
) -> None:
    suites = "cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]"
    file = web_config(tls(authority.issue("server"), "max_version: TLS12", suites))
    async with (
        serve(ROUTES, **LOCAL, web_config_file=file) as endpoint,
        connect(endpoint.url, trusting()) as client,
    ):
        cipher = client.writer.get_extra_info("cipher")
    assert cipher[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"


@pytest.mark.parametrize(
    ("credentials", "status"),
    [
        (basic("ada:right"), 200),
        (basic("ada:wrong"), 401),
        (basic("bob:right"), 401),
        (basic("ada:right\0"), 401),
        (basic("ada"), 401),
        ("Basic %%%", 401),
        ("Bearer right", 401),
        ("", 401),
    ],
)
async def test_password(connect: Any, web_config: Any, credentials: str, status: int) -> None:
    file = web_config(f"basic_auth_users:\n  ada: {hashed('right')}\n")
    headers = {"Authorization": credentials} if credentials else {}
    async with (
        serve(ROUTES, **LOCAL, web_config_file=file) as endpoint,
        connect(endpoint.url) as client,
    ):
        answer = await client.ask(**headers)
        hidden = await client.ask("/nothing", **headers)
    assert answer.status == status
    if status == 401:
        assert answer.headers["WWW-Authenticate"].startswith("Basic ")
        assert b"here" not in answer.body
        assert hidden.status == 401  # nor does it tell which pages there are


async def test_headers_of_the_file_are_on_every_answer(connect: Any, web_config: Any) -> None:
    file = web_config("http_server_config:\n  headers:\n    X-Frame-Options: deny\n")
    async with (
        serve(ROUTES, **LOCAL, web_config_file=file) as endpoint,
        connect(endpoint.url) as client,
    ):
        for path in ("/metrics", "/nothing"):
            assert (await client.ask(path)).headers["X-Frame-Options"] == "deny"


async def test_reload_under_continuous_scraping_loses_no_scrape(
    connect: Any, authority: Any, trusting: Trusting, web_config: Any
) -> None:
    file = web_config(tls(authority.issue("old")))
    seen: list[str] = []
    found = asyncio.Condition()

    async def scrape(url: str) -> None:
        while True:
            async with connect(url, trusting()) as client:
                answer = await client.ask()
            assert answer.body == b"here\n"
            seen.append(answer.certificate)
            async with found:
                found.notify_all()

    async def wait_for(name: str) -> None:
        async with asyncio.timeout(20), found:
            await found.wait_for(lambda: seen[-1:] == [name])

    async with (
        serve(ROUTES, **LOCAL, web_config_file=file) as endpoint,
        connect(endpoint.url, trusting()) as kept,
        asyncio.TaskGroup() as group,
    ):
        scraping = [group.create_task(scrape(endpoint.url)) for _ in range(2)]
        await wait_for("old")
        for name in ("new", "newer"):
            web_config(tls(authority.issue(name)))
            endpoint.reload_soon()
            await wait_for(name)
        assert (await kept.ask()).status == 200  # from before the first reload
        for task in scraping:
            task.cancel()
    assert set(seen) == {"old", "new", "newer"}


async def test_broken_file_keeps_the_old_one_and_logs_one_line(
    connect: Any,
    authority: Any,
    trusting: Trusting,
    web_config: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    certificate, key = authority.issue("server")
    _, other_key = authority.issue("other")
    file = web_config(tls((certificate, key)))
    broken = [
        "tls_server_config: [",
        tls((certificate, key), "min_version: TLS9", "client_auth_type: Maybe"),
        tls((certificate, other_key)),
        tls((certificate, authority.folder / "gone.key")),
    ]
    async with serve(ROUTES, **LOCAL, web_config_file=file) as endpoint:
        for text in broken:
            web_config(text)
            caplog.clear()
            with caplog.at_level(logging.INFO):
                await endpoint.reload()
            (record,) = caplog.records
            assert record.levelname == "ERROR"
            assert "\n" not in record.getMessage()
            assert "kept the web configuration" in record.getMessage()
            async with connect(endpoint.url, trusting()) as client:
                assert (await client.ask()).certificate == "server"


async def test_certificate_renewed_on_disk_is_used_without_a_signal(
    connect: Any,
    authority: Any,
    trusting: Trusting,
    web_config: Any,
    until: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    names = ["one", "two"]
    issued = {name: authority.issue(name) for name in names}
    live = tuple(authority.folder / f"live.{kind}" for kind in ("pem", "key"))

    def renew(name: str) -> None:
        """Swap links, as Kubernetes does; the certificate first, so the two differ a moment."""
        for file, link in zip(issued[name], live, strict=True):
            new = link.with_suffix(".new")
            new.symlink_to(file)
            new.replace(link)

    async def shown() -> str:
        async with connect(endpoint.url, trusting()) as client:
            return str((await client.ask()).certificate)

    renew("one")
    file = web_config(tls(live))
    with caplog.at_level(logging.INFO):
        async with serve(ROUTES, **LOCAL, web_config_file=file, check_files_s=0.02) as endpoint:
            assert await shown() == "one"
            web_config("tls_server_config: [")
            await until(lambda: "kept the web configuration" in caplog.text)
            assert await shown() == "one"
            web_config(tls(live))
            renew("two")
            await until(lambda: "reloaded" in caplog.messages[-1])
            async with asyncio.timeout(20):
                while await shown() != "two":
                    pass
    told = [message for message in caplog.messages if "kept" in message]
    assert len(told) == len(set(told))  # each complaint once, however often it is looked at


async def test_users_taken_out_are_out_at_once(connect: Any, web_config: Any) -> None:
    file = web_config(f"basic_auth_users:\n  ada: {hashed('right')}\n")
    async with (
        serve(ROUTES, **LOCAL, web_config_file=file) as endpoint,
        connect(endpoint.url) as client,
    ):
        assert (await client.ask(Authorization=basic("ada:right"))).status == 200
        web_config(f"basic_auth_users:\n  bob: {hashed('right')}\n")
        await endpoint.reload()
        assert (await client.ask(Authorization=basic("ada:right"))).status == 401
        assert (await client.ask(Authorization=basic("bob:right"))).status == 200


async def test_key_of_another_certificate_is_refused_at_the_start(
    authority: Any, web_config: Any
) -> None:
    (certificate, _), (_, key) = authority.issue("server"), authority.issue("other")
    with pytest.raises(VramscopeError, match=r"other\.key: .*: want a PEM certificate chain"):
        async with serve(ROUTES, **LOCAL, web_config_file=web_config(tls((certificate, key)))):
            pass
