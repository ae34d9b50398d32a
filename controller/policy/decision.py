"""What a policy returns, and the shape that all policies share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from vramscope.controller.belief import EngineBelief
from vramscope.controller.request import RouteRequest

__all__ = ["Decision", "Pick", "Policy"]


@dataclass(frozen=True, slots=True)
class Decision:
    """One pick, with what explains it.

    Attributes:
        engine: the engine's name.
        reason: what decided; one of the policy's ``reasons``.
        scores: points by term, by engine; empty where a policy gives none.
    """

    engine: str
    reason: str
    scores: Mapping[str, Mapping[str, float]]


Pick = Callable[[RouteRequest, Sequence[EngineBelief], int], Decision]
"""Pick one of the engines, of which there is at least one and each serves the request's model.

Pure. The number is a turn that rises by one a pick of the model: it breaks ties, so that
equal engines take turns and several controllers don't all run to the first one.
"""


class Policy(NamedTuple):
    """One row of the table."""

    pick: Pick
    reasons: tuple[str, ...]
    help: str
    """What it does, in a few words without a full stop."""
