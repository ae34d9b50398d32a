"""From a dump's numbers to a page table: which block is in what state, how full, and whose."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vramscope.exporters.blocks.page_table import (
    Block,
    Group,
    PageTable,
    Pool,
    Request,
    State,
    Table,
    token_share,
)
from vramscope.exporters.engine.dump_file import UNHASHED, DumpError

__all__ = ["engine_name", "page_table"]

Numbers = Sequence[int]


def engine_name(record: Mapping[str, Any]) -> str:
    """Return the name that tells engines of a host apart: id, and rank where it is not 0."""
    rank = int(record.get("dp_rank", 0))
    return str(record.get("engine")) + (f".dp{rank}" if rank else "")


def page_table(
    record: Mapping[str, Any], header: Mapping[str, Any], arrays: Sequence["array[int]"]
) -> PageTable:
    """Build the page table.

    Args:
        record: the header of the engine's record.
        header: the dump's.
        arrays: the dump's.

    Raises:
        DumpError: it lacks something, or its parts contradict each other.
    """
    try:
        return _page_table(record, header, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        # Written by another process, perhaps of another user: anything may be in it.
        raise DumpError(f"damaged: {type(error).__name__}: {error}") from error


def _page_table(
    record: Mapping[str, Any], header: Mapping[str, Any], arrays: Sequence["array[int]"]
) -> PageTable:
    groups = tuple(
        Group(int(group["pool"]), str(group["kind"]), int(group["block_size"]), bool(whole))
        for group, whole in zip(record["groups"], header["whole"], strict=True)
    )
    requests = tuple(_request(request) for request in header["requests"])
    nulls = [int(number) for number in header["null_blocks"]]
    ids = arrays[2 * len(nulls)]
    tables = tuple(_tables(header["tables"], ids, groups, nulls))
    pools = tuple(
        Pool(
            index,
            tuple(
                _blocks(
                    null,
                    arrays[2 * index],
                    arrays[2 * index + 1],
                    [table for table in tables if groups[table.group].pool == index],
                    groups,
                    requests,
                )
            ),
            int(header["scan"][f"pool{index}_reserved"]),
        )
        for index, null in enumerate(nulls)
    )
    return PageTable(
        engine_name(record),
        str(record["model"]),
        str(record["vllm_version"]),
        float(header["time_s"]),
        float(header["time_unix_s"]),
        float(header["took_s"]),
        pools,
        groups,
        requests,
        tables,
    )


def _request(request: Mapping[str, Any]) -> Request:
    adapter = request.get("adapter")
    return Request(
        f"{int(request['hash']):016x}",
        str(request["state"]),
        _count(request.get("computed_tokens")),
        _count(request.get("prompt_tokens")),
        _count(request.get("output_tokens")),
        None if adapter is None else str(adapter),
    )


def _count(value: Any) -> int | None:
    return None if value is None else int(value)


def _tables(
    rows: Sequence[Sequence[int]], ids: Numbers, groups: Sequence[Group], nulls: Sequence[int]
) -> Iterator[Table]:
    start = 0
    for group, request, length, gone in rows:
        null = nulls[groups[group].pool]
        numbers = ids[start : start + length]
        if length < 0 or len(numbers) < length:
            raise ValueError("its tables are longer than what is there")
        start += length
        blocks = tuple(None if number == null else number for number in numbers)
        yield Table(group, request, gone, blocks)


def _blocks(
    null: int,
    references: Numbers,
    twins: Numbers,
    tables: Sequence[Table],
    groups: Sequence[Group],
    requests: Sequence[Request],
) -> Iterator[Block]:
    holders: dict[int, list[int]] = {}
    fills: dict[int, float] = {}
    for table in tables:
        request, group = requests[table.request], groups[table.group]
        _add_holder(holders, table)
        if request.is_running:
            _add_fills(fills, table, group, request.computed_tokens or 0)
    for number, (count, twin) in enumerate(zip(references, twins, strict=True)):
        if number == null:
            continue
        hashed = twin != UNHASHED
        if number in fills:
            state = State.LIVE
        elif count:
            state = State.HELD
        else:
            state = State.EVICTABLE if hashed else State.CLEAN
        yield Block(
            number,
            state,
            fills.get(number, 0.0),
            count,
            twin if hashed else None,
            tuple(holders.get(number, ())),
        )


def _add_holder(holders: dict[int, list[int]], table: Table) -> None:
    for number in table.blocks:
        if number is not None:
            held_by = holders.setdefault(number, [])
            if table.request not in held_by:
                held_by.append(table.request)


def _add_fills(fills: dict[int, float], table: Table, group: Group, computed_tokens: int) -> None:
    """Add a running request's tokens; of several holders the furthest counts."""
    for place, number in enumerate(table.blocks):
        if number is not None:
            share = (
                1.0
                if group.whole
                else token_share(place, group.block_size, computed_tokens, table.gone_tokens)
            )
            fills[number] = max(share, fills.get(number, 0.0))
