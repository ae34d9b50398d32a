"""The controller's own numbers, under the catalog's names.

Every label value comes from the configuration or from a fixed list, and each counter starts
at 0, so that cardinality is bounded and a rate is right from the first scrape on.
"""

from collections.abc import Iterable, Iterator
from importlib.metadata import version

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from vramscope.controller.belief import EngineBelief
from vramscope.controller.fleet import Fleet
from vramscope.controller.ledger import Ledger
from vramscope.controller.policy import Decision, Policy
from vramscope.controller.sense import Sense
from vramscope.exporters.catalog import controller as catalog
from vramscope.exporters.catalog.exporter import BUILD_INFO, SOURCE_AGE, SOURCE_UP
from vramscope.exporters.exposition.families import Families, counter, histogram

__all__ = ["NO_MODEL", "OUTCOMES", "WARMTHS", "CatalogOnly", "ControllerMetrics", "LiveState"]

NO_MODEL = "_none"
"""Label of requests that name no served model. No served name begins with an underscore."""

OUTCOMES = (
    "completed",
    "client_error",
    "engine_error",
    "cancelled",
    "no_engine",
    "unknown_model",
)
WARMTHS = ("gpu", "cpu", "disk", "unreported")
RECORDS = "records"


class ControllerMetrics:
    """Counters and histograms of the front door.

    Args:
        registry: where they are registered.
        models: every name that a request may ask for.
        engines: names of the engines.
        policy_name: the policy's name in the table.
        policy: its row.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        models: Iterable[str],
        engines: Iterable[str],
        policy_name: str,
        policy: Policy,
    ) -> None:
        self._policy_name = policy_name
        self._requests = counter(catalog.REQUESTS, registry)
        self._decisions = counter(catalog.DECISIONS, registry)
        self._lora_picks = counter(catalog.LORA_PICKS, registry)
        self._retries = counter(catalog.RETRIES, registry)
        self._ttft_s = histogram(catalog.TTFT, registry)
        self._request_s = histogram(catalog.REQUEST_SECONDS, registry)
        for model in (*models, NO_MODEL):
            for outcome in OUTCOMES:
                self._requests.labels(model, outcome)
            if model != NO_MODEL:
                self._ttft_s.labels(model)
                self._request_s.labels(model)
        for reason in policy.reasons:
            self._decisions.labels(policy_name, reason)
        for warmth in WARMTHS:
            self._lora_picks.labels(warmth)
        for engine in engines:
            self._retries.labels(engine)

    def finished(self, model: str | None, outcome: str, duration_s: float) -> None:
        """Count one request that ended; ``model`` is None where it named no served one."""
        self._requests.labels(NO_MODEL if model is None else model, outcome).inc()
        if model is not None:
            self._request_s.labels(model).observe(duration_s)

    def first_byte(self, model: str, after_s: float) -> None:
        """Note when the first byte of a streamed answer passed."""
        self._ttft_s.labels(model).observe(after_s)

    def picked(self, decision: Decision, belief: EngineBelief, adapter: str | None) -> None:
        """Count one pick, and where the picked engine had the adapter."""
        self._decisions.labels(self._policy_name, decision.reason).inc()
        if adapter is not None:
            self._lora_picks.labels(belief.warmth(adapter)).inc()

    def refused(self, engine: str) -> None:
        """Count a request that goes to another engine because this one refused to connect."""
        self._retries.labels(engine).inc()


class LiveState(Collector):
    """Gauges read at the scrape: what is up, how old, and how much is in flight.

    Args:
        fleet: readiness by engine.
        ledger: requests in flight.
        sense: health of the records' reader.
    """

    def __init__(self, fleet: Fleet, ledger: Ledger, sense: Sense) -> None:
        self._fleet = fleet
        self._ledger = ledger
        self._sense = sense

    def collect(self) -> Iterator[Family]:
        """Yield the gauges of this moment."""
        families = Families()
        for member in self._fleet:
            families.add(catalog.INFLIGHT, self._ledger.in_flight(member.name), member.name)
            families.add(catalog.ENGINE_UP, float(member.ready), member.name, member.model)
        families.add(SOURCE_UP, float(self._sense.up), RECORDS)
        families.add(SOURCE_AGE, self._sense.age_s(), RECORDS)
        families.add(BUILD_INFO, 1.0, version("vramscope"))
        yield from families.collect()


class CatalogOnly(Collector):
    """What a registry collects, less the library's ``_created`` series.

    In the text format those are gauges of their own, which the catalog doesn't know; a
    scraper sees a restart in the counter itself.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Family]:
        """Yield the families of the catalog."""
        for family in self._registry.collect():
            family.samples = [one for one in family.samples if not one.name.endswith("_created")]
            yield family
