"""Starts the engines, waits until they are healthy, watches them, and stops them all."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from vramscope.controller.command import Command, engine_environment
from vramscope.controller.config import EngineConfig
from vramscope.controller.errors import EngineStartError, ProcessLeftError
from vramscope.controller.fleet import Fleet, Member
from vramscope.controller.log_tail import telling_line
from vramscope.controller.process import ProcessGroup, exit_text

__all__ = ["Engines", "Running", "Timing"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Timing:
    """How long things may take.

    Attributes:
        startup_timeout_s: until the first healthy answer.
        poll_s: between two health checks while starting.
        progress_s: between two progress lines while starting.
        health_period_s: between two health checks of a ready engine.
        health_timeout_s: for one health check's answer.
        unhealthy_after: failed checks in a row that take a ready engine out.
        stop_grace_s: from SIGTERM to SIGKILL; vLLM needs a second or two.
        orphan_grace_s: the same for what a dead engine left behind, which serves nobody.
    """

    startup_timeout_s: float
    poll_s: float = 0.25
    progress_s: float = 5.0
    health_period_s: float = 2.0
    health_timeout_s: float = 5.0
    unhealthy_after: int = 3
    stop_grace_s: float = 15.0
    orphan_grace_s: float = 2.0


@dataclass(frozen=True, slots=True)
class Running:
    """One started engine."""

    member: Member
    group: ProcessGroup
    log_path: Path
    started_at_s: float


class Engines:
    """The engines of one configuration as processes.

    Args:
        configs: the engines' settings.
        fleet: where readiness is told to the front door.
        command: makes an engine's command line.
        run_dir: folder of the probe records.
        log_dir: folder of the engines' output.
        inherited: environment to build theirs on.
        session: for health checks.
        timing: how long things may take.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        configs: Sequence[EngineConfig],
        fleet: Fleet,
        *,
        command: Command,
        run_dir: Path,
        log_dir: Path,
        inherited: Mapping[str, str],
        session: aiohttp.ClientSession,
        timing: Timing,
        clock: Callable[[], float],
    ) -> None:
        self._configs = configs
        self._fleet = fleet
        self._command = command
        self._run_dir = run_dir
        self._log_dir = log_dir
        self._inherited = inherited
        self._session = session
        self._timing = timing
        self._clock = clock
        self._running: dict[str, Running] = {}

    @property
    def running(self) -> Mapping[str, Running]:
        """What was started, by name, dead or alive."""
        return self._running

    async def start(self) -> None:
        """Start all engines side by side and return when every one is healthy.

        Raises:
            EngineStartError: one died or was too slow. The others still run: call ``stop``.
        """
        for config in self._configs:
            self._running[config.name] = self._spawn(config)
        waits = [asyncio.create_task(self._until_ready(one)) for one in self._running.values()]
        try:
            await asyncio.gather(*waits)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def watch(self) -> None:
        """Keep the fleet's readiness true; return when no engine lives any more."""
        async with asyncio.TaskGroup() as tasks:
            for one in self._running.values():
                tasks.create_task(self._watch(one))

    async def stop(self) -> list[str]:
        """Stop every engine and what it started; safe to call at any time, and again.

        Returns:
            Complaints: one line for each engine of which something is left.
        """
        for one in self._running.values():
            one.member.ready = False
        stops = [self._stop(one, self._timing.stop_grace_s) for one in self._running.values()]
        return [complaint for complaint in await asyncio.gather(*stops) if complaint]

    def _spawn(self, config: EngineConfig) -> Running:
        member = self._fleet[config.name]
        log_path = self._log_dir / f"{config.name}.log"
        try:
            group = ProcessGroup.start(
                self._command(config, member.port),
                engine_environment(config, self._run_dir, self._inherited),
                log_path,
            )
        except EngineStartError as error:
            raise EngineStartError(f"engine {config.name}: {error}") from error
        log.info(
            "engine %s: starting (pid %d, port %d, log %s)",
            config.name,
            group.pid,
            member.port,
            log_path,
        )
        return Running(member, group, log_path, self._clock())

    async def _until_ready(self, one: Running) -> None:
        name, limit_s = one.member.name, self._timing.startup_timeout_s
        next_line_s = self._timing.progress_s
        while not await self._healthy(one):
            if await self._exits_within(one, self._timing.poll_s):
                raise EngineStartError(f"engine {name}: died at start: {_post_mortem(one)}")
            waited_s = self._clock() - one.started_at_s
            if waited_s > limit_s:
                raise EngineStartError(
                    f"engine {name}: not healthy after {limit_s:.0f} s (startup_timeout_s): "
                    f"last log line: {telling_line(one.log_path) or 'none'}; log {one.log_path}"
                )
            if waited_s >= next_line_s:
                next_line_s += self._timing.progress_s
                log.info("engine %s: starting, %.0f s", name, waited_s)
        one.member.ready = True
        log.info("engine %s: ready in %.1f s", name, self._clock() - one.started_at_s)

    async def _watch(self, one: Running) -> None:
        name, failures = one.member.name, 0
        while not await self._exits_within(one, self._timing.health_period_s):
            if await self._healthy(one):
                failures = 0
                if not one.member.ready:
                    one.member.ready = True
                    log.info("engine %s: healthy again", name)
                continue
            failures += 1
            if failures == self._timing.unhealthy_after and one.member.ready:
                one.member.ready = False
                log.warning("engine %s: no healthy answer %d times in a row", name, failures)
        one.member.ready = False
        log.error("engine %s: died: %s", name, _post_mortem(one))
        # The API server may leave its EngineCore and workers behind, with all their memory.
        if complaint := await self._stop(one, self._timing.orphan_grace_s):
            log.error("%s", complaint)

    async def _exits_within(self, one: Running, timeout_s: float) -> bool:
        done, _ = await asyncio.wait([one.group.exited], timeout=timeout_s)
        return bool(done)

    async def _healthy(self, one: Running) -> bool:
        if one.group.exited.done():
            return False
        timeout = aiohttp.ClientTimeout(total=self._timing.health_timeout_s)
        try:
            async with self._session.get(f"{one.member.url}/health", timeout=timeout) as answer:
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False

    async def _stop(self, one: Running, grace_s: float) -> str | None:
        name = one.member.name
        try:
            if not await one.group.stop(grace_s):
                log.warning("engine %s: still there %.0f s after SIGTERM: killed", name, grace_s)
        except ProcessLeftError as error:
            return f"engine {name}: {error}"
        return None


def _post_mortem(one: Running) -> str:
    code = one.group.exited.result()
    line = telling_line(one.log_path) or "it wrote nothing"
    # Whom a signal ended had no time to say why: its last line is where it was, not the cause.
    joint = ": " if code >= 0 else ", last in its log: "
    return f"{exit_text(code)}{joint}{line} (log {one.log_path})"
