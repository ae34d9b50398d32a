"""Belief = observed + ledger, with a stated fallback for each signal that is missing."""

from collections.abc import Callable
from typing import Any

import pytest

from vramscope.controller.belief import STALE_S, Observation, PoolBelief, believe
from vramscope.controller.ledger import Ledger
from vramscope.controller.request import RouteRequest
from vramscope.exporters.signals.samples import EngineState

Make = Callable[..., Any]
READ_S = 100.0
FRENCH = RouteRequest("french", "french", 16, 16)  # two blocks of 16 tokens


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def test_usable_blocks_are_the_observed_ones_less_what_was_dispatched_since(
    ledger: Ledger, sample: Make, kv: Make
) -> None:
    ledger.dispatch("a", FRENCH, READ_S - 1)  # in the observation already
    ledger.dispatch("a", FRENCH, READ_S + 0.1)
    ledger.dispatch("b", FRENCH, READ_S + 0.1)  # somewhere else
    finished = ledger.dispatch("a", FRENCH, READ_S + 0.2)
    ledger.finish(finished)
    belief = believe("a", Observation((sample("a", kv(10)),), READ_S), ledger, READ_S + 0.3)
    assert belief.pools == (PoolBelief(10 - 2, (16,)),)
    assert belief.in_flight == 2


def test_the_moment_of_a_sample_is_its_own_not_that_of_the_read(
    ledger: Ledger, sample: Make, kv: Make
) -> None:
    ledger.dispatch("a", FRENCH, READ_S - 0.1)
    old_scan = Observation((sample("a", kv(10, age_s=0.2)),), READ_S)
    belief = believe("a", old_scan, ledger, READ_S)
    assert belief.pools == (PoolBelief(10 - 2, (16,)),)


def test_without_an_observation_only_the_ledger_speaks(ledger: Ledger) -> None:
    ledger.dispatch("a", FRENCH, READ_S)
    for nothing in (None, Observation((), READ_S)):
        belief = believe("a", nothing, ledger, READ_S)
        assert belief.in_flight == 1
        assert belief.fits(1) is None
        assert belief.age_s is None
        assert belief.warmth("french") == "unreported"
        assert belief.is_warm("french")  # in flight there
        assert not belief.is_warm("german")


def test_a_stale_observation_counts_as_none_but_shows_its_age(
    ledger: Ledger, sample: Make, kv: Make
) -> None:
    observation = Observation((sample("a", kv(10), resident={"french": "gpu"}),), READ_S)
    fresh = believe("a", observation, ledger, READ_S + STALE_S)
    stale = believe("a", observation, ledger, READ_S + STALE_S + 0.01)
    assert fresh.fits(16) is True
    assert fresh.warmth("french") == "gpu"
    assert stale.fits(16) is None
    assert stale.warmth("french") == "unreported"
    assert stale.age_s == pytest.approx(STALE_S + 0.01)


def test_a_stale_scan_leaves_room_unknown_and_residency_known(
    ledger: Ledger, sample: Make, kv: Make
) -> None:
    pool = kv(10, age_s=STALE_S + 0.1)
    observation = Observation((sample("a", pool, resident={"french": "cpu"}),), READ_S)
    belief = believe("a", observation, ledger, READ_S)
    assert belief.pools is None
    assert belief.warmth("french") == "cpu"
    assert belief.warmth("german") == "disk"


def test_before_the_first_scan_room_is_unknown(ledger: Ledger, sample: Make) -> None:
    belief = believe("a", Observation((sample("a"),), READ_S), ledger, READ_S)
    assert belief.fits(1) is None
    assert belief.age_s == 0


def test_unknown_block_sizes_fall_back_to_vllms_default(
    ledger: Ledger, sample: Make, kv: Make
) -> None:
    observation = Observation((sample("a", kv(10, block_sizes=())),), READ_S)
    belief = believe("a", observation, ledger, READ_S)
    assert belief.pools == (PoolBelief(10, (16,)),)


def test_a_request_takes_whole_blocks_in_each_group_of_each_pool(
    ledger: Ledger, sample: Make, kv: Make
) -> None:
    observation = Observation(
        (sample("a", kv(3, block_sizes=(16, 32)), kv(9, block_sizes=(16,))),), READ_S
    )
    belief = believe("a", observation, ledger, READ_S)
    assert belief.fits(32) is True  # 2 + 1 blocks of 3, 2 of 9
    assert belief.fits(33) is False  # 3 + 2 blocks of 3


def test_with_several_ranks_the_roomiest_counts_and_the_coldest_tier(
    ledger: Ledger, sample: Make, kv: Make
) -> None:
    ledger.dispatch("a", FRENCH, READ_S + 0.1)  # two blocks, one a rank
    ranks = (
        sample("a", kv(3), resident={"french": "gpu", "german": "gpu"}),
        sample("a", kv(20), resident={"french": "cpu"}, dp_rank=1),
    )
    belief = believe("a", Observation(ranks, READ_S), ledger, READ_S + 0.2)
    assert belief.pools == (PoolBelief(20 - 1, (16,)),)
    assert belief.warmth("french") == "cpu"
    assert belief.warmth("german") == "disk"


def test_a_hung_engine_is_believed_hung(ledger: Ledger, sample: Make, kv: Make) -> None:
    one = sample("a", kv(10), state=EngineState.HUNG, age_s=30.0)
    belief = believe("a", Observation((one,), READ_S), ledger, READ_S + 0.5)
    assert belief.hung
    assert belief.age_s == 30.5


def test_the_ledger_forgets_what_is_finished_and_tells_engines_apart(ledger: Ledger) -> None:
    first = ledger.dispatch("a", FRENCH, 1.0)
    second = ledger.dispatch("a", RouteRequest("tiny", None, 5, 5), 2.0)
    assert (ledger.in_flight("a"), ledger.in_flight("b"), ledger.total) == (2, 0, 2)
    assert ledger.tokens("a") == 42
    assert ledger.adapters("a") == {"french"}
    assert [*ledger.since("a", 1.0)] == [second]
    assert [*ledger.since("a", 0.5)] == [second, first]
    ledger.finish(first)
    ledger.finish(first)
    assert (ledger.in_flight("a"), ledger.tokens("a"), ledger.adapters("a")) == (1, 10, frozenset())
