"""One run of serve over fake engines in child processes: start, service, drain, stop."""

import asyncio
import json
import logging
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from vramscope.controller.config import EngineConfig, ServeConfig
from vramscope.controller.controller import run
from vramscope.controller.errors import AddressInUseError, ConfigError, EngineStartError
from vramscope.controller.process import session_members
from vramscope.controller.stopping import StopRequests
from vramscope.exporters.catalog import METRICS

ASK = {"model": "tiny", "prompt": "hello"}


class Serving:
    """A run in a task of this loop."""

    def __init__(self, config: ServeConfig, fake: Path) -> None:
        self.stops = StopRequests()
        self.ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def command(engine: EngineConfig, port: int) -> list[str]:
            return [sys.executable, str(fake), "--port", str(port), *engine.args]

        self.task = asyncio.create_task(
            run(config, command=command, stops=self.stops, say=self.ready.set_result)
        )

    async def until_ready(self) -> tuple[str, str]:
        """Return the URLs of the front door and the admin listener."""
        waits: list[asyncio.Future[Any]] = [self.task, self.ready]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if self.task.done():
            await self.task
        front, admin = re.findall(r"http://\S+?:\d+", self.ready.result())
        return front, admin


@pytest.fixture
async def serving(
    tmp_path: Path, fake_engine_file: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[..., Serving]]:
    monkeypatch.setenv("FOO", "inherited")
    runs: list[Serving] = []

    def start(*engines: dict[str, Any], **settings: Any) -> Serving:
        config = ServeConfig.model_validate(
            {
                "engines": [
                    {"name": name, "model": "org/tiny", **one}
                    for name, one in zip("abc", engines, strict=False)
                ],
                "front_door": {"port": 0},
                "admin": {"port": 0},
                "log_dir": str(tmp_path / "logs"),
                "run_dir": str(tmp_path / "run"),
                "startup_timeout_s": 60,
                **settings,
            }
        )
        runs.append(Serving(config, fake_engine_file))
        return runs[-1]

    yield start
    for one in runs:
        one.stops.ask()
        one.stops.ask()
    async with asyncio.timeout(30):
        await asyncio.gather(*(one.task for one in runs), return_exceptions=True)


@asynccontextmanager
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with asyncio.timeout(60), aiohttp.ClientSession() as session:
        yield session


async def engines_of(session: aiohttp.ClientSession, admin: str) -> dict[str, Any]:
    async with session.get(f"{admin}/debug/engines") as answer:
        return {one["name"]: one for one in (await answer.json())["engines"]}


async def until(condition: Callable[[], Any]) -> None:
    """Poll for what raises no event here: another process's doing."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_from_start_to_a_clean_stop(serving: Any, tmp_path: Path) -> None:
    one = serving({"env": {"FOO": "mine"}, "args": ["--children", "meek"]}, {})
    async with client() as session:
        front, admin = await one.until_ready()
        engines = await engines_of(session, admin)
        assert {engine["ready"] for engine in engines.values()} == {True}
        log = tmp_path / "logs" / "a.log"
        assert engines["a"]["log"] == str(log)
        await until(lambda: log.read_text().count("child is up") == 2)
        assert len(session_members(engines["a"]["pid"])) == 3
        told = json.loads(log.read_text().splitlines()[0])
        assert told == {
            "VRAMSCOPE_ENGINE": "a",
            "VRAMSCOPE_RUN_DIR": str(tmp_path / "run"),
            "FOO": "mine",
        }
        pids = set()
        for _ in range(2):
            async with session.post(f"{front}/v1/completions", json=ASK) as answer:
                pids.add((await answer.json())["pid"])
        assert pids == {engine["pid"] for engine in engines.values()}
    one.stops.ask()
    async with asyncio.timeout(40):
        assert await one.task == 0
    for engine in engines.values():
        assert session_members(engine["pid"]) == []


async def test_the_admin_pages_while_starting_ready_and_draining(
    serving: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "vramscope")
    one = serving({}, {"args": ["--mute"]}, startup_timeout_s=60)
    async with client() as session:
        await until(lambda: re.search(r"engine a: ready in [\d.]+ s", caplog.text))
        found = re.search(r"admin listener at (\S+)", caplog.text)
        assert found is not None
        async with session.get(f"{found[1]}/readyz") as answer:
            assert (answer.status, await answer.text()) == (200, "ready: a\n")
        async with session.get(f"{found[1]}/healthz") as answer:
            assert answer.status == 200
        one.stops.ask()
    assert await one.task == 130
    assert "interrupted before the engines were ready" in caplog.text


async def test_the_metrics_page_is_the_catalogs(serving: Any) -> None:
    one = serving({"adapters": {"french": "org/french"}})
    async with client() as session:
        front, admin = await one.until_ready()
        for model in ("tiny", "french", "nobody's"):
            body = {**ASK, "model": model, "stream": True}
            async with session.post(f"{front}/v1/completions", json=body) as answer:
                await answer.read()
        async with session.get(f"{admin}/metrics") as answer:
            assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            page = await answer.text()
    families = {family.name: family for family in text_string_to_metric_families(page)}
    catalog = {metric.name.removesuffix("_total"): metric for metric in METRICS}
    for name, family in families.items():
        metric = catalog[name]
        assert (family.type, family.documentation) == (metric.kind, metric.help)
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(metric.labels)
    outcomes = {
        (sample.labels["model"], sample.labels["outcome"]): sample.value
        for sample in families["vramscope_requests"].samples
    }
    assert outcomes["tiny", "completed"] == outcomes["french", "completed"] == 1
    assert outcomes["_none", "unknown_model"] == 1
    assert outcomes["tiny", "cancelled"] == 0  # known from the start
    assert len(outcomes) == 18
    up = families["vramscope_engine_up"].samples[0]
    assert (up.labels, up.value) == ({"engine": "a", "model": "tiny"}, 1)


async def test_an_engine_that_dies_at_start_is_one_line_and_stops_the_others(
    serving: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "vramscope")
    one = serving({"args": ["--mute"]}, {"args": ["--die", "ValueError: no room"]})
    with pytest.raises(EngineStartError) as caught:
        await one.task
    log = tmp_path / "logs" / "b.log"
    assert str(caught.value) == (
        f"engine b: died at start: exit status 3: ValueError: no room (log {log})"
    )
    pids = [int(pid) for pid in re.findall(r"\(pid (\d+)", caplog.text)]
    assert len(pids) == 2
    assert [session_members(pid) for pid in pids] == [[], []]


async def test_an_engine_that_never_answers_is_given_up(serving: Any) -> None:
    one = serving({"args": ["--mute"]}, startup_timeout_s=1)
    with pytest.raises(
        EngineStartError, match=r"^engine a: not healthy after 1 s \(startup_timeout_s\): last log"
    ):
        await one.task


async def test_ports_in_use_are_said_before_anything_starts(serving: Any, tmp_path: Path) -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        for settings in ({"front_door": {"port": port}}, {"admin": {"port": port}}):
            with pytest.raises(AddressInUseError, match=f":{port}: Address already in use"):
                await serving({}, **settings).task
        with pytest.raises(AddressInUseError, match=f"engine b: port {port} on 127"):
            await serving({}, {"port": port}).task
    assert not (tmp_path / "logs").exists()


async def test_a_log_folder_that_cannot_be_made_is_one_line(serving: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"^log_dir = .*/file/logs': Not a directory: want a "):
        await serving({}, log_dir=str(tmp_path / "file" / "logs")).task


async def test_a_dead_engine_is_left_out_and_the_last_ones_death_ends_the_run(
    serving: Any, caplog: pytest.LogCaptureFixture
) -> None:
    one = serving({"args": ["--children", "meek"]}, {"served_name": "other"})
    async with client() as session:
        front, admin = await one.until_ready()
        engines = await engines_of(session, admin)
        os.kill(engines["a"]["pid"], signal.SIGKILL)
        await until(lambda: "engine a: died: killed by SIGKILL, last in its log: " in caplog.text)
        async with session.post(f"{front}/v1/completions", json=ASK) as answer:
            assert answer.status == 503
        async with session.post(
            f"{front}/v1/completions", json={**ASK, "model": "other"}
        ) as answer:
            assert answer.status == 200
        async with session.get(f"{admin}/readyz") as answer:
            assert await answer.text() == "ready: b\n"
        await until(lambda: session_members(engines["a"]["pid"]) == [])  # its orphans too
        os.kill(engines["b"]["pid"], signal.SIGKILL)
        assert await one.task == 1
    assert "no engine is left" in caplog.text


async def test_an_engine_killed_mid_stream_ends_the_stream_with_an_error(serving: Any) -> None:
    one = serving({})
    async with client() as session:
        front, _ = await one.until_ready()
        body = {**ASK, "stream": True, "fake": {"exit": "stream"}}
        async with session.post(f"{front}/v1/completions", json=body) as answer:
            assert answer.status == 200
            last = (await answer.content.read()).strip().rpartition(b"\n\n")[2]
    assert "died" in json.loads(last.removeprefix(b"data: "))["error"]["message"]


async def test_a_drain_lets_the_request_in_flight_finish_and_accepts_no_other(
    serving: Any,
) -> None:
    one = serving({})
    async with client() as session:
        front, admin = await one.until_ready()
        # One chunk is held until released by a second client of the engine: use its own port.
        port = (await engines_of(session, admin))["a"]["port"]
        body = {**ASK, "stream": True, "fake": {"chunks": 1, "step": True}}
        async with session.post(f"{front}/v1/completions", json=body) as answer:
            one.stops.ask()
            await until_refused(front)
            async with session.get(f"{admin}/readyz") as page:
                assert (page.status, await page.text()) == (503, "draining\n")
            assert not one.task.done()
            async with session.post(f"http://127.0.0.1:{port}/release") as released:
                assert released.status == 200
            assert await answer.content.read() == b"data: 0\n\ndata: [DONE]\n\n"
        assert await one.task == 0


@pytest.mark.parametrize("how", ["second signal", "timeout"])
async def test_a_drain_is_cut_by_a_second_signal_or_its_timeout(
    serving: Any, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "vramscope")
    one = serving({}, drain_timeout_s=60 if how == "second signal" else 0.2)
    async with client() as session:
        front, _ = await one.until_ready()
        body = {**ASK, "stream": True, "fake": {"hold": "stream"}}
        async with session.post(f"{front}/v1/completions", json=body) as answer:
            await answer.content.readuntil(b"\n\n")
            one.stops.ask()
            if how == "second signal":
                await until_refused(front)
                one.stops.ask()
            with pytest.raises(aiohttp.ClientPayloadError):  # cut, and seen to be cut
                await answer.content.read()
        assert await one.task == 0
    assert "drained: 0 requests finished, 1 cut" in caplog.text


async def until_refused(url: str) -> None:
    host, _, port = url.removeprefix("http://").partition(":")
    async with asyncio.timeout(30):
        while True:
            try:
                _, writer = await asyncio.open_connection(host, int(port))
            except ConnectionRefusedError:
                return
            writer.close()
            await asyncio.sleep(0.01)
