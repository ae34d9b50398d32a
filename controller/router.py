"""Joins fleet, observations, ledger and policy into one pick."""

from collections import Counter
from collections.abc import Callable, Collection

from vramscope.controller.belief import EngineBelief, Observation, believe
from vramscope.controller.fleet import Fleet
from vramscope.controller.ledger import Ledger
from vramscope.controller.policy import Decision, Policy
from vramscope.controller.request import RouteRequest

__all__ = ["Pick", "Router"]

Pick = tuple[Decision, EngineBelief]


class Router:
    """Picks an engine a request.

    Args:
        fleet: who serves what and is ready.
        policy: the row of the table that decides.
        ledger: what is in flight; read here, written by who sends.
        observe: returns what was last read of an engine, or None.
        clock: monotonic seconds, the same as the ledger's.
    """

    def __init__(
        self,
        fleet: Fleet,
        policy: Policy,
        ledger: Ledger,
        observe: Callable[[str], Observation | None],
        clock: Callable[[], float],
    ) -> None:
        self._fleet = fleet
        self._policy = policy
        self._ledger = ledger
        self._observe = observe
        self._clock = clock
        # One a model: a shared turn would send two alternating models each to one engine.
        self._turns: Counter[str] = Counter()

    def belief(self, engine: str) -> EngineBelief:
        """Return what is believed of an engine now."""
        return believe(engine, self._observe(engine), self._ledger, self._clock())

    def pick(self, request: RouteRequest, without: Collection[str] = ()) -> Pick | None:
        """Pick an engine for a request, or None when no ready one serves its model.

        Args:
            request: its model is one of the fleet's.
            without: engines that were tried and refused.
        """
        beliefs = [
            self.belief(member.name)
            for member in self._fleet.ready_for(request.model)
            if member.name not in without
        ]
        # A hung engine answers nobody now, but it is all there is when all of them hang.
        beliefs = [belief for belief in beliefs if not belief.hung] or beliefs
        if not beliefs:
            return None
        turn = self._turns[request.model]
        self._turns[request.model] += 1
        decision = self._policy.pick(request, beliefs, turn)
        return decision, next(one for one in beliefs if one.engine == decision.engine)
