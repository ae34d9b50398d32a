"""A picture by request: each row a block table, in the order of its request's tokens."""

from typing import NamedTuple

from vramscope.exporters.blocks.page_table import Block, PageTable, Request, Table

__all__ = ["Row", "request_rows"]


class Row(NamedTuple):
    """One request's table in one group.

    Attributes:
        request: whose.
        group: in which; None where the engine has one group only.
        places: its blocks in the order of its tokens; None where one was given back.
    """

    request: Request
    group: int | None
    places: tuple[Block | None, ...]


def request_rows(table: PageTable) -> list[Row]:
    """Return the block tables, the longest first."""
    by_number = [{block.number: block for block in pool.blocks} for pool in table.pools]
    several = len(table.groups) > 1

    def row(of: Table) -> Row:
        blocks = by_number[table.groups[of.group].pool]
        places = tuple(None if number is None else blocks[number] for number in of.blocks)
        return Row(table.requests[of.request], of.group if several else None, places)

    rows = [row(of) for of in table.tables]
    return sorted(rows, key=lambda r: (-len(r.places), r.request.name, r.group or 0))
