"""What was dispatched and is not yet finished: the part of an engine's load nobody has seen."""

from collections.abc import Iterator
from dataclasses import dataclass

from vramscope.controller.request import RouteRequest

__all__ = ["Dispatch", "Ledger"]


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One request sent to an engine.

    Attributes:
        number: unique in the ledger, rising.
        engine: where it went.
        tokens: KV positions that it takes at its end, as estimated.
        adapter: its adapter, or None.
        dispatched_at_s: on the monotonic clock of the caller.
    """

    number: int
    engine: str
    tokens: int
    adapter: str | None
    dispatched_at_s: float


class Ledger:
    """Counts in-flight requests by engine. Time comes in; entries leave when finished.

    A burst inside one observation period is seen here first: belief = observed + ledger.
    """

    def __init__(self) -> None:
        self._next = 0
        self._by_engine: dict[str, dict[int, Dispatch]] = {}

    def dispatch(self, engine: str, request: RouteRequest, now_s: float) -> Dispatch:
        """Enter a request that is about to be sent; hand the result to ``finish``."""
        self._next += 1
        entry = Dispatch(self._next, engine, request.tokens, request.adapter, now_s)
        self._by_engine.setdefault(engine, {})[entry.number] = entry
        return entry

    def finish(self, entry: Dispatch) -> None:
        """Strike a request out, however it ended. Once is enough; twice changes nothing."""
        self._by_engine[entry.engine].pop(entry.number, None)

    def in_flight(self, engine: str) -> int:
        """Return the number of requests at an engine."""
        return len(self._by_engine.get(engine, ()))

    def tokens(self, engine: str) -> int:
        """Return the tokens asked of an engine by its requests in flight."""
        return sum(entry.tokens for entry in self._by_engine.get(engine, {}).values())

    def adapters(self, engine: str) -> frozenset[str]:
        """Return the adapters of the requests in flight at an engine."""
        entries = self._by_engine.get(engine, {}).values()
        return frozenset(entry.adapter for entry in entries if entry.adapter is not None)

    def since(self, engine: str, moment_s: float) -> Iterator[Dispatch]:
        """Yield what was sent to an engine after a moment and is in flight, newest first."""
        for entry in reversed(self._by_engine.get(engine, {}).values()):
            if entry.dispatched_at_s <= moment_s:
                return  # entries are in the order of their dispatch
            yield entry

    @property
    def total(self) -> int:
        """Requests in flight at all engines."""
        return sum(map(len, self._by_engine.values()))
