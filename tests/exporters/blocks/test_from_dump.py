"""Hand-computed: a pool small enough to count on fingers."""

from array import array
from typing import Any

import pytest

from vramscope.exporters.blocks.from_dump import engine_name, page_table
from vramscope.exporters.blocks.page_table import Block, PageTable, State
from vramscope.exporters.blocks.usage import pool_sample, request_usage
from vramscope.exporters.engine.dump_file import UNHASHED, DumpError

NO = UNHASHED
RECORD: dict[str, Any] = {
    "engine": "a",
    "model": "tiny",
    "dp_rank": 0,
    "vllm_version": "0.32.0",
    "groups": [{"group": 0, "pool": 0, "kind": "FullAttentionSpec", "block_size": 16}],
}
REQUESTS = [
    {"hash": 7, "state": "running", "computed_tokens": 36, "prompt_tokens": 30, "adapter": "ad0"},
    {"hash": 8, "state": "running", "computed_tokens": 20, "output_tokens": 2, "adapter": None},
    {"hash": 9, "state": "finished"},
]


def header(**changed: Any) -> dict[str, Any]:
    return {
        "time_s": 5.0,
        "time_unix_s": 1.0e9,
        "took_s": 0.001,
        "scan": {"pool0_reserved": 1.0},
        "null_blocks": [0],
        "whole": [False],
        "requests": REQUESTS,
        # a: blocks 1, 2, 3; b: 1 too, and 4; c, which left: 5.
        "tables": [[0, 0, 3, 0], [0, 1, 2, 0], [0, 2, 1, 0]],
        **changed,
    }


def arrays() -> list["array[int]"]:
    # The null block, 1 to 8: 6 and 7 hold the same prefix, 8 nothing.
    references = array("I", [1, 2, 1, 1, 1, 1, 0, 0, 0])
    twins = array("I", [NO, 1, 2, NO, NO, NO, 6, 6, NO])
    return [references, twins, array("I", [1, 2, 3, 1, 4, 5])]


@pytest.fixture
def table() -> PageTable:
    return page_table(RECORD, header(), arrays())


def test_each_block_has_state_fill_and_holders(table: PageTable) -> None:
    assert table.pools[0].blocks == (
        Block(1, State.LIVE, 1.0, 2, 1, (0, 1)),
        Block(2, State.LIVE, 1.0, 1, 2, (0,)),
        Block(3, State.LIVE, 0.25, 1, None, (0,)),
        Block(4, State.LIVE, 0.25, 1, None, (1,)),
        Block(5, State.HELD, 0.0, 1, None, (2,)),
        Block(6, State.EVICTABLE, 0.0, 0, 6, ()),
        Block(7, State.EVICTABLE, 0.0, 0, 6, ()),
        Block(8, State.CLEAN, 0.0, 0, None, ()),
    )


def test_parts_add_up_to_the_pool(table: PageTable) -> None:
    kv = pool_sample(table.pools[0])
    assert (kv.live, kv.slack, kv.held, kv.evictable, kv.clean) == (2.5, 1.5, 1, 2, 1)
    assert (kv.blocks, kv.reserved) == (8, 1)


def test_block_of_the_same_content_as_one_before_is_a_duplicate(table: PageTable) -> None:
    assert [block.number for block in table.pools[0].blocks if block.is_duplicate] == [7]


def test_what_vllm_no_longer_says_of_a_request_is_absent(table: PageTable) -> None:
    gone = table.requests[2]
    assert (gone.name, gone.computed_tokens, gone.adapter) == ("0000000000000009", None, None)


def test_usage_names_shared_blocks_and_slack_of_running_requests(table: PageTable) -> None:
    usage = [(u.request.name[-1], u.blocks, u.shared, u.slack) for u in request_usage(table)]
    assert usage == [("7", 3, 1, 0.75), ("8", 2, 1, 0.75), ("9", 1, 0, None)]


def test_tokens_that_left_the_window_are_slack_and_null_blocks_nobodys() -> None:
    # 36 tokens, the first 20 out of the window: its first block is given back, 12 of 16 of the
    # second and 4 of the third are attended to.
    found = page_table(
        RECORD,
        header(tables=[[0, 0, 3, 20]], requests=REQUESTS[:1]),
        [array("I", [1, 0, 1, 1]), array("I", [NO] * 4), array("I", [0, 2, 3])],
    )
    assert [block.fill for block in found.pools[0].blocks] == [0.0, 0.75, 0.25]
    assert found.tables[0].blocks == (None, 2, 3)


def test_block_of_a_state_is_full_whatever_its_length() -> None:
    found = page_table(RECORD, header(whole=[True]), arrays())
    assert [block.fill for block in found.pools[0].blocks[:4]] == [1.0] * 4


def test_referenced_block_in_no_table_is_held() -> None:
    found = page_table(
        RECORD,
        header(tables=[], requests=[]),
        [array("I", [1, 1]), array("I", [NO, NO]), array("I")],
    )
    assert found.pools[0].blocks == (Block(1, State.HELD, 0.0, 1, None, ()),)


def test_pools_have_their_own_blocks_of_the_same_number() -> None:
    groups = [{"pool": pool, "kind": "x", "block_size": 16} for pool in (0, 1)]
    found = page_table(
        {**RECORD, "groups": groups},
        header(
            null_blocks=[0, 0],
            whole=[False, False],
            tables=[[0, 1, 1, 0], [1, 1, 1, 0]],
            scan={"pool0_reserved": 0.0, "pool1_reserved": 2.0},
        ),
        [*[array("I", [1, 1, 0]), array("I", [NO] * 3)] * 2, array("I", [1, 1])],
    )
    assert [pool.reserved for pool in found.pools] == [0, 2]
    assert all(pool.blocks[0].holders == (1,) for pool in found.pools)


@pytest.mark.parametrize(
    "changed",
    [
        {"tables": [[0, 0, 99, 0]]},
        {"tables": [[3, 0, 1, 0]]},
        {"tables": [[0, 9, 1, 0]]},
        {"tables": [[0, 0, -1, 0]]},
        {"requests": [{}]},
        {"requests": None},
        {"whole": []},
        {"null_blocks": [0, 0]},
        {"scan": {}},
        {"time_s": "late"},
    ],
    ids=str,
)
def test_contradictions_are_said_to_be_damage(changed: dict[str, Any]) -> None:
    with pytest.raises(DumpError, match="damaged"):
        page_table(RECORD, header(**changed), arrays())


def test_rank_is_in_the_name_where_it_tells_engines_apart() -> None:
    assert engine_name(RECORD) == "a"
    assert engine_name({**RECORD, "dp_rank": 1}) == "a.dp1"
