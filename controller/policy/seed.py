"""The article's scoring: +50 for a warm adapter, -100 for a request that does not fit.

Where room or residency is unknown the term is 0 for that engine: neither a reward nor a
punishment for saying nothing. Equal scores go to the engine with the fewest requests in
flight, and equal ones of those take turns.
"""

from collections.abc import Mapping, Sequence

from vramscope.controller.belief import EngineBelief
from vramscope.controller.policy.decision import Decision, Policy
from vramscope.controller.policy.least_request import least_loaded
from vramscope.controller.request import RouteRequest

__all__ = ["SEED"]

WARM_POINTS = 50.0
NO_ROOM_POINTS = -100.0


def score(request: RouteRequest, belief: EngineBelief) -> dict[str, float]:
    """Return an engine's points by term."""
    warm = request.adapter is not None and belief.is_warm(request.adapter)
    no_room = belief.fits(request.tokens) is False
    return {
        "warm_adapter": WARM_POINTS if warm else 0.0,
        "room": NO_ROOM_POINTS if no_room else 0.0,
    }


def pick(request: RouteRequest, beliefs: Sequence[EngineBelief], turn: int) -> Decision:
    """Pick an engine with the most points."""
    scores = {belief.engine: score(request, belief) for belief in beliefs}
    totals = {engine: sum(points.values()) for engine, points in scores.items()}
    best = max(totals.values())
    tied = [belief for belief in beliefs if totals[belief.engine] == best]
    engine, reason = least_loaded(tied, turn)
    if len(beliefs) > 1 and len(tied) < len(beliefs):
        reason = deciding_term(scores, totals, engine)
    return Decision(engine, reason, scores)


def deciding_term(
    scores: Mapping[str, Mapping[str, float]], totals: Mapping[str, float], winner: str
) -> str:
    """Return the term in which the winner leads most over the best engine that it beat."""
    beaten = max(
        (engine for engine in totals if totals[engine] < totals[winner]), key=totals.__getitem__
    )
    return max(scores[winner], key=lambda term: scores[winner][term] - scores[beaten][term])


SEED = Policy(
    pick,
    ("only", "warm_adapter", "room", "in_flight", "turn"),
    "+50 where the adapter is warm, -100 where the request does not fit the usable KV memory",
)
