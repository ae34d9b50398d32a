"""Wires the parts together and takes them through start, service, drain and stop."""

import asyncio
import logging
import os
import socket
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from prometheus_client import CollectorRegistry

from vramscope.controller.admin import Admin
from vramscope.controller.command import Command
from vramscope.controller.config import Listener, ServeConfig
from vramscope.controller.engines import Engines, Timing
from vramscope.controller.errors import ConfigError
from vramscope.controller.fleet import Fleet
from vramscope.controller.front_door import FrontDoor
from vramscope.controller.ledger import Ledger
from vramscope.controller.metrics import ControllerMetrics, LiveState
from vramscope.controller.policy import POLICIES
from vramscope.controller.ports import BACKLOG, engine_ports, listen
from vramscope.controller.relay import client_session
from vramscope.controller.router import Router
from vramscope.controller.sense import Sense
from vramscope.controller.stopping import StopRequests
from vramscope.exporters.engine.host import HostRecords
from vramscope.exporters.engine.rundir import open_folder, remove_dead_records, run_dir
from vramscope.exporters.exposition.http_log import HttpLog

__all__ = ["run"]

log = logging.getLogger(__name__)

EXIT_STOPPED = 0
EXIT_FAILED = 1
EXIT_INTERRUPTED = 130
FLUSH_S = 1.0
"""For writing out answers that are already complete, once the drain is over."""


async def run(
    config: ServeConfig, *, command: Command, stops: StopRequests, say: Callable[[str], None]
) -> int:
    """Serve until asked to stop or until no engine is left. Leaves nothing running.

    Args:
        config: the checked configuration.
        command: makes an engine's command line.
        stops: asks to stop.
        say: prints a line for the user.

    Returns:
        0 stopped as asked, 1 no engine left, 130 interrupted before ready.

    Raises:
        VramscopeError: it could not be started.
    """
    with (
        listen("front_door", config.front_door) as front_socket,
        listen("admin", config.admin) as admin_socket,
    ):
        fleet = Fleet(config.engines, engine_ports(config.engines))
        records = run_dir() if config.run_dir is None else Path(config.run_dir)
        async with client_session() as session:
            engines = Engines(
                config.engines,
                fleet,
                command=command,
                run_dir=records,
                log_dir=_log_dir(config),
                inherited=os.environ,
                session=session,
                timing=Timing(startup_timeout_s=config.startup_timeout_s),
                clock=time.monotonic,
            )
            controller = Controller(config, fleet, engines, session, records, stops)
            try:
                code = await controller.serve(front_socket, admin_socket, say)
            finally:
                complaints = await controller.stop_engines()
                _tidy(records)
    return EXIT_FAILED if complaints else code


class Controller:
    """One run of ``vramscope serve``: what is shared by start, service, drain and stop."""

    def __init__(
        self,
        config: ServeConfig,
        fleet: Fleet,
        engines: Engines,
        session: aiohttp.ClientSession,
        records: Path,
        stops: StopRequests,
    ) -> None:
        clock = time.monotonic
        ledger, registry = Ledger(), CollectorRegistry()
        policy = POLICIES[config.policy]
        self._config = config
        self._engines = engines
        self._stops = stops
        self._sense = Sense(HostRecords(records).read, config.sense_period_s, clock)
        router = Router(fleet, policy, ledger, self._sense.observation, clock)
        metrics = ControllerMetrics(
            registry,
            models=fleet.models,
            engines=[member.name for member in fleet],
            policy_name=config.policy,
            policy=policy,
        )
        registry.register(LiveState(fleet, ledger, self._sense))
        self._front_door = FrontDoor(
            fleet=fleet,
            router=router,
            ledger=ledger,
            session=session,
            metrics=metrics,
            assumed_output_tokens=config.assumed_output_tokens,
            max_request_bytes=config.max_request_bytes,
            clock=clock,
            started_at_s=time.time(),
        )
        self._admin = Admin(
            registry=registry, fleet=fleet, engines=engines, router=router, ledger=ledger
        )

    async def serve(
        self, front_socket: socket.socket, admin_socket: socket.socket, say: Callable[[str], None]
    ) -> int:
        """Start the engines, serve, and drain; the engines still run on return."""
        front = _runner(self._front_door.app())
        admin = _runner(self._admin.app())
        sense: asyncio.Task[None] | None = None
        watch: asyncio.Task[None] | None = None
        try:
            # The admin listener is open while the engines boot: /readyz answers 503.
            await _open(admin, admin_socket)
            log.info("admin listener at %s", _url(self._config.admin, admin_socket))
            if not await self._start_engines():
                log.info("interrupted before the engines were ready")
                return EXIT_INTERRUPTED
            sense = asyncio.create_task(self._sense.run())
            watch = asyncio.create_task(self._engines.watch())
            await _open(front, front_socket)
            say(
                f"ready: front door {_url(self._config.front_door, front_socket)}, "
                f"admin {_url(self._config.admin, admin_socket)}"
            )
            await _first(self._stops.first.wait(), watch)
            if watch.done():
                await watch
                log.error("no engine is left: stopping")
                return EXIT_FAILED
            await self._drain(front, watch)
            return EXIT_STOPPED
        finally:
            await _cancel(sense, watch)
            await front.cleanup()
            await admin.cleanup()

    async def stop_engines(self) -> list[str]:
        """Stop what was started, and say so.

        Returns:
            Complaints: one line for each engine of which something is left.
        """
        names = ", ".join(self._engines.running)
        if not names:
            return []
        log.info("stopping engines: %s", names)
        complaints = await self._engines.stop()
        for complaint in complaints:
            log.error("%s", complaint)
        if not complaints:
            log.info("stopped engines: %s", names)
        return complaints

    async def _start_engines(self) -> bool:
        """Return whether the engines are ready; False when asked to stop before."""
        start = asyncio.create_task(self._engines.start())
        try:
            await _first(self._stops.first.wait(), start)
            if start.done():
                await start  # raises what went wrong
                return True
            return False
        finally:
            await _cancel(start)

    async def _drain(self, front: web.AppRunner, watch: asyncio.Task[None]) -> None:
        limit_s = self._config.drain_timeout_s
        self._admin.drain()
        for site in list(front.sites):
            await site.stop()  # closes the listening socket only
        in_flight = self._front_door.active
        log.info("draining %d requests, at most %.0f s (again to cut)", in_flight, limit_s)
        drain = asyncio.create_task(self._front_door.drain())
        try:
            async with asyncio.timeout(limit_s):
                await _first(drain, self._stops.second.wait(), watch)
        except TimeoutError:
            log.warning("drain_timeout_s is over")
        finally:
            await _cancel(drain)
        cut = self._front_door.active
        log.info("drained: %d requests finished, %d cut", max(in_flight - cut, 0), cut)


def _tidy(records: Path) -> None:
    """Remove the records that the engines, killed by vLLM itself as it stops, leave behind."""
    try:
        folder = open_folder(records)
    except OSError:
        return  # nothing was written there
    try:
        remove_dead_records(folder)
    finally:
        os.close(folder)


def _log_dir(config: ServeConfig) -> Path:
    """Return the folder of the engines' output, made if need be.

    Not in the run directory: that is often in memory and readable by the exporter's group,
    and an engine's output may be large and may hold prompts.
    """
    try:
        if config.log_dir is None:
            return Path(tempfile.mkdtemp(prefix="vramscope-logs-"))
        path = Path(config.log_dir)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"log_dir = {config.log_dir!r}: {error.strerror}: want a folder that can be written"
        ) from error
    return path


def _runner(app: web.Application) -> web.AppRunner:
    return web.AppRunner(
        app,
        handler_cancellation=True,
        access_log=None,
        logger=HttpLog(logging.getLogger("vramscope.http")),
        shutdown_timeout=FLUSH_S,
    )


async def _open(runner: web.AppRunner, bound: socket.socket) -> None:
    await runner.setup()
    await web.SockSite(runner, bound, backlog=BACKLOG).start()


def _url(listener: Listener, bound: socket.socket) -> str:
    host = f"[{listener.host}]" if ":" in listener.host else listener.host
    return f"http://{host}:{bound.getsockname()[1]}"


async def _first(*waits: "Coroutine[Any, Any, object] | asyncio.Task[None]") -> None:
    """Return when the first of them is done. Tasks given are left running."""
    own = [asyncio.create_task(one) for one in waits if not isinstance(one, asyncio.Task)]
    given = [one for one in waits if isinstance(one, asyncio.Task)]
    try:
        await asyncio.wait([*own, *given], return_when=asyncio.FIRST_COMPLETED)
    finally:
        await _cancel(*own)


async def _cancel(*tasks: "asyncio.Task[Any] | None") -> None:
    """Cancel tasks and wait until they are over; what they raised was looked at, or is moot."""
    started = [task for task in tasks if task is not None]
    for task in started:
        task.cancel()
    await asyncio.gather(*started, return_exceptions=True)
