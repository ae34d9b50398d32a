"""Fewest requests in flight; the baseline that any claim must beat."""

from collections.abc import Sequence

from vramscope.controller.belief import EngineBelief
from vramscope.controller.policy.decision import Decision, Policy
from vramscope.controller.request import RouteRequest

__all__ = ["LEAST_REQUEST", "least_loaded"]


def pick(_: RouteRequest, beliefs: Sequence[EngineBelief], turn: int) -> Decision:
    """Pick an engine with the fewest requests in flight; equal ones take turns."""
    engine, reason = least_loaded(beliefs, turn)
    return Decision(engine, reason, {})


def least_loaded(beliefs: Sequence[EngineBelief], turn: int) -> tuple[str, str]:
    """Return the engine with the fewest requests in flight and what decided.

    Returns:
        The engine's name, and ``only``, ``in_flight`` or ``turn``.
    """
    fewest = min(belief.in_flight for belief in beliefs)
    tied = [belief for belief in beliefs if belief.in_flight == fewest]
    chosen = tied[turn % len(tied)].engine
    if len(beliefs) == 1:
        return chosen, "only"
    return chosen, "in_flight" if len(tied) == 1 else "turn"


LEAST_REQUEST = Policy(pick, ("only", "in_flight", "turn"), "fewest requests in flight")
