"""Hand-computed: block tables small enough to count on fingers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from vramscope.exporters.engine.probe.slack import (
    PoolScan,
    computed_by_request,
    computed_tokens,
    scan_pool,
)


@dataclass(eq=False)
class Block:
    block_id: int
    ref_cnt: int = 1
    is_null: bool = False


@dataclass
class Request:
    request_id: str
    num_computed_tokens: int
    num_in_flight_tokens: int = 0
    num_stale_output_tokens: int = 0


class FullAttentionSpec:
    pass


class MambaSpec:
    pass


@dataclass
class Manager:
    req_to_blocks: Mapping[str, Sequence[Block]]
    block_size: int = 16
    kv_cache_spec: Any = field(default_factory=FullAttentionSpec)
    window: int | None = None

    def get_num_skipped_tokens(self, num_computed_tokens: int) -> int:
        return 0 if self.window is None else max(0, num_computed_tokens - self.window + 1)


class Split(NamedTuple):
    live: float
    slack: float
    lookahead: float
    held: int


def split(found: PoolScan) -> Split:
    return Split(found.live, found.slack, found.lookahead, found.held)


def blocks(*ids: int) -> list[Block]:
    return [Block(number) for number in ids]


def scan(
    manager: Manager,
    running: Sequence[Request],
    *,
    referenced: int,
    extra: int = 0,
    deferred: Sequence[Sequence[Block]] = (),
    lookahead_tokens: int = 0,
) -> Split:
    computed = computed_by_request(running)
    return split(scan_pool([manager], computed, deferred, referenced, extra, lookahead_tokens))


def test_tails_are_slack_and_shared_prefixes_count_once() -> None:
    # a: 4 blocks, 52 tokens; b: 5 blocks, 72 tokens; both share block 1; c: 4 blocks, 60 tokens.
    shared = Block(1, ref_cnt=2)
    tables = {
        "a": [shared, *blocks(2, 3, 4)],
        "b": [shared, *blocks(5, 6, 7, 8)],
        "c": blocks(9, 10, 11, 12),
    }
    running = [Request("a", 52), Request("b", 72), Request("c", 60)]
    found = scan(Manager(tables), running, referenced=12, extra=1)
    # tails filled 4, 8 and 12 of 16
    assert found == Split(live=10.5, slack=1.5, lookahead=0, held=0)


def test_block_allocated_and_not_begun_is_all_slack() -> None:
    found = scan(Manager({"a": blocks(1, 2, 3)}), [Request("a", 16)], referenced=3)
    assert found == Split(live=1, slack=2, lookahead=0, held=0)


def test_tokens_in_flight_are_not_there_yet() -> None:
    request = Request("a", num_computed_tokens=32, num_in_flight_tokens=8)
    found = scan(Manager({"a": blocks(1, 2)}), [request], referenced=2)
    assert found == Split(live=1.5, slack=0.5, lookahead=0, held=0)


def test_stale_tokens_in_flight_are_of_an_earlier_life() -> None:
    # Preempted with 8 in flight, resumed, 24 computed since.
    request = Request("a", 24, num_in_flight_tokens=8, num_stale_output_tokens=8)
    assert computed_tokens(request) == 24


def test_releases_without_in_flight_counts_subtract_placeholders() -> None:
    @dataclass
    class Old:
        request_id: str = "a"
        num_computed_tokens: int = 33
        num_output_placeholders: int = 1

    assert computed_by_request([Old()]) == {"a": 32}


def test_releases_without_stale_counts_subtract_what_is_in_flight() -> None:
    @dataclass
    class Newer:
        request_id: str = "a"
        num_computed_tokens: int = 33
        num_in_flight_tokens: int = 3

    assert computed_by_request([Newer()]) == {"a": 30}


def test_more_in_flight_than_computed_is_none() -> None:
    requests = [Request("a", 5, num_in_flight_tokens=8), Request("b", 20)]
    assert computed_by_request(requests) == {"a": 0, "b": 20}
    assert computed_by_request([]) == {}


def test_lookahead_is_the_part_of_the_slack_kept_for_drafts() -> None:
    manager = Manager({"a": blocks(1, 2), "b": blocks(3)})
    running = [Request("a", 20), Request("b", 15)]
    found = scan(manager, running, referenced=3, lookahead_tokens=4)
    # a: 12 slots empty, 4 of them for drafts; b: 1 empty, all of it
    assert found == Split(live=35 / 16, slack=13 / 16, lookahead=5 / 16, held=0)


def test_request_waiting_for_remote_kv_holds_its_blocks() -> None:
    manager = Manager({"a": blocks(1, 2), "remote": blocks(3, 4, 5)})
    found = scan(manager, [Request("a", 32)], referenced=5)
    assert found == Split(live=2, slack=0, lookahead=0, held=3)


def test_block_that_a_running_request_holds_too_is_not_held() -> None:
    shared = Block(2, ref_cnt=2)
    manager = Manager({"a": [Block(1), shared], "remote": [shared, Block(3)]})
    found = scan(manager, [Request("a", 32)], referenced=3, extra=1)
    assert found == Split(live=2, slack=0, lookahead=0, held=1)


def test_blocks_freed_but_fenced_by_a_step_in_flight_are_held() -> None:
    manager = Manager({"a": blocks(1)})
    found = scan(manager, [Request("a", 16)], referenced=3, deferred=[blocks(2, 3)])
    assert found == Split(live=1, slack=0, lookahead=0, held=2)


def test_blocks_pinned_by_nobody_we_know_are_held() -> None:
    manager = Manager({"a": blocks(1, 2)})
    found = scan(manager, [Request("a", 20)], referenced=6)
    assert found == Split(live=1.25, slack=0.75, lookahead=0, held=4)


def test_pin_on_a_live_block_does_not_make_it_held() -> None:
    pinned = Block(1, ref_cnt=2)  # counted by the pool, by a way the tracker has not seen
    manager = Manager({"a": [pinned, Block(2)]})
    found = scan(manager, [Request("a", 32)], referenced=2, extra=1)
    assert found == Split(live=2, slack=0, lookahead=0, held=0)


def test_pin_on_a_tail_does_not_fill_it() -> None:
    pinned = Block(2, ref_cnt=2)
    found = scan(Manager({"a": [Block(1), pinned]}), [Request("a", 20)], referenced=2, extra=1)
    assert found == Split(live=1.25, slack=0.75, lookahead=0, held=0)


def test_tail_that_a_waiting_request_holds_too_is_as_full_as_the_running_one_has_it() -> None:
    shared = Block(2, ref_cnt=2)
    manager = Manager({"a": [Block(1), shared], "remote": [shared]})
    found = scan(manager, [Request("a", 20)], referenced=2, extra=1)
    assert found == Split(live=1.25, slack=0.75, lookahead=0, held=0)


def test_shared_block_is_as_full_as_its_furthest_holder_has_it() -> None:
    # a computes block 2 in a step in flight, and b was scheduled on it meanwhile.
    shared = Block(2, ref_cnt=2)
    manager = Manager({"a": [Block(1), shared], "b": [Block(3), shared]})
    running = [Request("a", 32, num_in_flight_tokens=16), Request("b", 32, num_in_flight_tokens=4)]
    found = scan(manager, running, referenced=3, extra=1)
    assert found == Split(live=2 + 12 / 16, slack=4 / 16, lookahead=0, held=0)


def test_what_left_the_window_is_slack_until_the_pool_takes_it_back() -> None:
    # 70 tokens, a window of 24: the next token sees 47 to 69. Block 0 and 1 were taken back
    # (null), block 2 (32 to 47) keeps one live token, block 4 (64 to 79) has 6.
    null = Block(0, ref_cnt=9, is_null=True)
    manager = Manager({"a": [null, null, *blocks(3, 4, 5)]}, window=24)
    found = scan(manager, [Request("a", 70)], referenced=3)
    assert found == Split(live=(1 + 16 + 6) / 16, slack=(15 + 10) / 16, lookahead=0, held=0)


def test_block_behind_the_window_not_yet_taken_back_is_empty() -> None:
    null = Block(0, is_null=True)
    manager = Manager({"a": [null, *blocks(2, 3, 4, 5)]}, window=24)
    found = scan(manager, [Request("a", 70)], referenced=4)
    assert found.slack == pytest.approx((16 + 15 + 10) / 16)
    assert found.held == 0


def test_mamba_state_is_always_full() -> None:
    null = Block(0, is_null=True)
    manager = Manager({"a": [null, null, Block(1)]}, kv_cache_spec=MambaSpec())
    found = scan(manager, [Request("a", 700)], referenced=1)
    assert found == Split(live=1, slack=0, lookahead=0, held=0)


def test_groups_of_different_block_sizes_add_up_in_blocks() -> None:
    small, large = Manager({"a": blocks(1, 2)}, 16), Manager({"a": blocks(3)}, 64)
    found = scan_pool([small, large], {"a": 24}, [], 3, 0, 0)
    assert found.entries_by_group == (2, 1)
    assert split(found) == Split(live=1.5 + 24 / 64, slack=0.5 + 40 / 64, lookahead=0, held=0)


def test_idle_pool_has_nothing() -> None:
    assert scan(Manager({}), [], referenced=0) == Split(0, 0, 0, 0)


def test_slack_and_entries_are_by_length_of_the_request() -> None:
    # 20 and 128 tokens are of the first class, 130 of the second.
    tables = {"a": blocks(1, 2), "b": blocks(*range(3, 11)), "c": blocks(*range(11, 20))}
    found = scan_pool([Manager(tables)], {"a": 20, "b": 128, "c": 130}, [], 19, 0, 0)
    assert found.slack_by_length == (12 / 16, 14 / 16, 0, 0, 0, 0)
    assert found.entries_by_length == (10, 9, 0, 0, 0, 0)
    assert sum(found.slack_by_length) == found.slack


def test_slack_of_a_shared_block_is_with_the_request_that_has_it_fullest() -> None:
    shared = Block(9, ref_cnt=2)
    tables = {"a": [*blocks(*range(1, 9)), shared], "b": [*blocks(*range(11, 19)), shared]}
    found = scan_pool([Manager(tables)], {"a": 128, "b": 132}, [], 17, 1, 0)
    assert found.slack_by_length == (0, 12 / 16, 0, 0, 0, 0)
    assert found.entries_by_length == (9, 9, 0, 0, 0, 0)


def test_table_entries_of_a_group_are_those_of_waiting_requests_too() -> None:
    null = Block(0, is_null=True)
    manager = Manager({"a": [null, *blocks(1, 2)], "remote": blocks(3)}, window=16)
    found = scan_pool([manager], {"a": 40}, [], 3, 0, 0)
    assert found.entries_by_group == (3,)
    assert found.entries_by_length == (2, 0, 0, 0, 0, 0)
