"""The admin listener: metrics, health, readiness, and what is believed of each engine."""

from dataclasses import asdict

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from vramscope.controller.engines import Engines
from vramscope.controller.fleet import Fleet, Member
from vramscope.controller.ledger import Ledger
from vramscope.controller.metrics import CatalogOnly
from vramscope.controller.router import Router
from vramscope.exporters.exposition.pages import METRICS_CONTENT_TYPE, pages

__all__ = ["Admin"]


class Admin:
    """Read-only pages about the controller; no prompt, no answer, no environment.

    Args:
        registry: what /metrics shows.
        fleet: readiness by engine.
        engines: their processes.
        router: what is believed of them.
        ledger: what is in flight.
    """

    def __init__(
        self,
        *,
        registry: CollectorRegistry,
        fleet: Fleet,
        engines: Engines,
        router: Router,
        ledger: Ledger,
    ) -> None:
        self._registry = registry
        self._fleet = fleet
        self._engines = engines
        self._router = router
        self._ledger = ledger
        self._draining = False

    def app(self) -> web.Application:
        """Return the application."""
        return pages(
            {
                "/metrics": self._metrics,
                "/healthz": self._healthz,
                "/readyz": self._readyz,
                "/debug/engines": self._debug_engines,
            }
        )

    def drain(self) -> None:
        """Say not ready from now on, so that load balancers look elsewhere."""
        self._draining = True

    async def _metrics(self) -> web.Response:
        page = generate_latest(CatalogOnly(self._registry))
        return web.Response(body=page, headers={"Content-Type": METRICS_CONTENT_TYPE})

    async def _healthz(self) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self) -> web.Response:
        if self._draining:
            return web.Response(status=503, text="draining\n")
        ready = [member.name for member in self._fleet if member.ready]
        if not ready:
            return web.Response(status=503, text="no engine is ready\n")
        return web.Response(text=f"ready: {' '.join(ready)}\n")

    async def _debug_engines(self) -> web.Response:
        return web.json_response({"engines": [self._describe(member) for member in self._fleet]})

    def _describe(self, member: Member) -> dict[str, object]:
        running = self._engines.running.get(member.name)
        belief = asdict(self._router.belief(member.name))
        return {
            "name": member.name,
            "model": member.model,
            "adapters": sorted(member.adapters),
            "port": member.port,
            "ready": member.ready,
            "pid": running.group.pid if running else None,
            "log": str(running.log_path) if running else None,
            "in_flight_requests": self._ledger.in_flight(member.name),
            "in_flight_tokens": self._ledger.tokens(member.name),
            "belief": {**belief, "adapters_in_flight": sorted(belief["adapters_in_flight"])},
        }
