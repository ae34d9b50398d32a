"""Each engine in turn; the reference that knows nothing."""

from collections.abc import Sequence

from vramscope.controller.belief import EngineBelief
from vramscope.controller.policy.decision import Decision, Policy
from vramscope.controller.request import RouteRequest

__all__ = ["ROUND_ROBIN"]


def pick(_: RouteRequest, beliefs: Sequence[EngineBelief], turn: int) -> Decision:
    """Pick the next engine of the list."""
    return Decision(beliefs[turn % len(beliefs)].engine, "turn", {})


ROUND_ROBIN = Policy(pick, ("turn",), "each engine in turn")
