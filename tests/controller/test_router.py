"""The router filters before the policy scores."""

from collections.abc import Callable
from typing import Any

import pytest

from vramscope.controller.belief import Observation
from vramscope.controller.config import EngineConfig
from vramscope.controller.fleet import Fleet
from vramscope.controller.ledger import Ledger
from vramscope.controller.policy import POLICIES
from vramscope.controller.request import RouteRequest
from vramscope.controller.router import Router
from vramscope.exporters.signals.samples import EngineState

BASE = RouteRequest("tiny", None, 4, 4)
Make = Callable[..., Any]


class Routed:
    def __init__(self, *configs: EngineConfig, policy: str = "round-robin") -> None:
        self.fleet = Fleet(configs, range(len(configs)))
        for member in self.fleet:
            member.ready = True
        self.observations: dict[str, Observation] = {}
        self.router = Router(
            self.fleet, POLICIES[policy], Ledger(), self.observations.get, lambda: 0.0
        )

    def picks(self, request: RouteRequest, times: int, without: str = "") -> str:
        picks = [self.router.pick(request, without) for _ in range(times)]
        return "".join(pick[0].engine if pick else "-" for pick in picks)


def test_only_ready_engines_of_the_model_are_candidates(engine_config: Make) -> None:
    routed = Routed(engine_config("a"), engine_config("b", served_name="other"), engine_config("c"))
    assert routed.picks(BASE, 4) == "acac"
    assert routed.picks(RouteRequest("other", None, 4, 4), 2) == "bb"
    routed.fleet["a"].ready = False
    assert routed.picks(BASE, 2) == "cc"
    routed.fleet["c"].ready = False
    assert routed.picks(BASE, 1) == "-"


def test_an_adapter_goes_only_where_it_is_configured(engine_config: Make) -> None:
    routed = Routed(engine_config("a"), engine_config("b", adapters={"fr": "org/fr"}))
    assert routed.picks(RouteRequest("fr", "fr", 4, 4), 2) == "bb"
    assert routed.picks(BASE, 2) == "ab"


def test_a_refused_engine_is_left_out(engine_config: Make) -> None:
    routed = Routed(engine_config("a"), engine_config("b"))
    assert routed.picks(BASE, 2, without="a") == "bb"
    assert routed.picks(BASE, 1, without="ab") == "-"


def test_a_hung_engine_is_left_out_unless_all_hang(
    engine_config: Make, sample: Make, kv: Make
) -> None:
    routed = Routed(engine_config("a"), engine_config("b"))
    hung = {name: sample(name, kv(50), state=EngineState.HUNG) for name in "ab"}
    routed.observations["a"] = Observation((hung["a"],), 0.0)
    assert routed.picks(BASE, 2) == "bb"
    routed.observations["b"] = Observation((hung["b"],), 0.0)
    assert set(routed.picks(BASE, 4)) == {"a", "b"}


@pytest.mark.parametrize("policy", POLICIES)
def test_models_that_alternate_each_use_all_their_engines(engine_config: Make, policy: str) -> None:
    routed = Routed(
        engine_config("a", adapters={"fr": "org/fr"}),
        engine_config("b", adapters={"fr": "org/fr"}),
        policy=policy,
    )
    picked = {"tiny": "", "fr": ""}
    for _ in range(4):
        picked["tiny"] += routed.picks(BASE, 1)
        picked["fr"] += routed.picks(RouteRequest("fr", "fr", 4, 4), 1)
    assert picked == {"tiny": "abab", "fr": "abab"}
