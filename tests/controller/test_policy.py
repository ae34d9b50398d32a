"""Policies are pure: a table of beliefs in, one engine and its reason out."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vramscope.controller.belief import EngineBelief, PoolBelief
from vramscope.controller.policy import POLICIES
from vramscope.controller.request import RouteRequest

BASE = RouteRequest("tiny", None, 100, 60)  # ten blocks of 16 tokens
FRENCH = RouteRequest("french", "french", 100, 60)
WARM, COLD = {"french": "gpu"}, {"french": "cpu"}


def engine(
    name: str,
    in_flight: int = 0,
    usable: int | None = 50,
    tiers: dict[str, str] | None = None,
    sent: str = "",
) -> EngineBelief:
    pools = None if usable is None else (PoolBelief(usable, (16,)),)
    adapters = frozenset(sent.split())
    return EngineBelief(name, in_flight, pools, tiers, adapters)


@pytest.mark.parametrize(
    ("beliefs", "picked", "reason"),
    [
        ([engine("a")], "a", "only"),
        ([engine("a", tiers=COLD), engine("b", in_flight=9, tiers=WARM)], "b", "warm_adapter"),
        ([engine("a", tiers={}), engine("b", tiers=WARM)], "b", "warm_adapter"),
        # +50 does not outweigh -100: warm without room loses to cold with room
        ([engine("a", usable=9, tiers=WARM), engine("b", 9, 10, COLD)], "b", "room"),
        # nobody has room: the warm one
        ([engine("a", usable=9, tiers=WARM), engine("b", usable=9)], "a", "warm_adapter"),
        # unknown room is neither rewarded nor punished
        ([engine("a", usable=9), engine("b", usable=None)], "b", "room"),
        ([engine("a", in_flight=1), engine("b", usable=None)], "b", "in_flight"),
        # no report: an adapter in flight there counts as warm
        ([engine("a"), engine("b", in_flight=3, sent="french")], "b", "warm_adapter"),
        # a report that says cold outweighs the ledger
        ([engine("a"), engine("b", 3, tiers=COLD, sent="french")], "a", "in_flight"),
        ([engine("a", in_flight=2), engine("b", in_flight=1)], "b", "in_flight"),
        ([engine("a", in_flight=2), engine("b", in_flight=2)], "a", "turn"),
        # warm and room at once: the larger lead is named
        ([engine("a", usable=9, tiers=COLD), engine("b", tiers=WARM)], "b", "room"),
    ],
)
def test_seed_decides_by_the_articles_points(
    beliefs: list[EngineBelief], picked: str, reason: str
) -> None:
    decision = POLICIES["seed"].pick(FRENCH, beliefs, 0)
    assert (decision.engine, decision.reason) == (picked, reason)


def test_seed_explains_each_engine_term_by_term() -> None:
    beliefs = [engine("a", usable=9, tiers=WARM), engine("b", tiers=COLD)]
    assert POLICIES["seed"].pick(FRENCH, beliefs, 0).scores == {
        "a": {"warm_adapter": 50.0, "room": -100.0},
        "b": {"warm_adapter": 0.0, "room": 0.0},
    }


def test_seed_rewards_no_warmth_for_the_base_model() -> None:
    beliefs = [engine("a", in_flight=1, tiers=WARM), engine("b")]
    assert POLICIES["seed"].pick(BASE, beliefs, 0).engine == "b"


def test_seed_rounds_a_request_up_to_whole_blocks() -> None:
    beliefs = [engine("a", usable=10), engine("b", in_flight=1, usable=11)]
    assert POLICIES["seed"].pick(RouteRequest("tiny", None, 100, 60), beliefs, 0).engine == "a"
    assert POLICIES["seed"].pick(RouteRequest("tiny", None, 100, 61), beliefs, 0).engine == "b"


@pytest.mark.parametrize("name", POLICIES)
def test_equal_engines_take_turns(name: str) -> None:
    beliefs = [engine("a"), engine("b"), engine("c")]
    picks = [POLICIES[name].pick(BASE, beliefs, turn).engine for turn in range(9)]
    assert Counter(picks) == {"a": 3, "b": 3, "c": 3}
    assert picks[:3] == picks[3:6]


def test_round_robin_looks_at_nothing() -> None:
    beliefs = [engine("a", in_flight=100, usable=0), engine("b")]
    picks = [POLICIES["round-robin"].pick(FRENCH, beliefs, turn).engine for turn in range(4)]
    assert picks == ["a", "b", "a", "b"]


def test_least_request_looks_at_requests_in_flight_only() -> None:
    beliefs = [engine("a", 1, usable=0), engine("b", 2, tiers=WARM), engine("c", 1)]
    picks = [POLICIES["least-request"].pick(FRENCH, beliefs, turn).engine for turn in range(4)]
    assert picks == ["a", "c", "a", "c"]


BELIEFS = st.builds(
    engine,
    name=st.uuids().map(str),
    in_flight=st.integers(0, 5),
    usable=st.none() | st.integers(-20, 20),
    tiers=st.none() | st.dictionaries(st.just("french"), st.sampled_from(["gpu", "cpu"])),
    sent=st.sampled_from(["", "french"]),
)


# The machine may be busy: how long an example takes to make proves nothing.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(sorted(POLICIES)),
    st.sampled_from([BASE, FRENCH]),
    st.lists(BELIEFS, min_size=1, max_size=5),
    st.integers(0, 1000),
)
def test_every_policy_picks_one_of_the_engines_for_a_reason_of_its_list(
    name: str, request_: RouteRequest, beliefs: list[EngineBelief], turn: int
) -> None:
    decision = POLICIES[name].pick(request_, beliefs, turn)
    assert decision.engine in {belief.engine for belief in beliefs}
    assert decision.reason in POLICIES[name].reasons
    assert decision == POLICIES[name].pick(request_, beliefs, turn)
