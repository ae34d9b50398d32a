"""A page table as text for a terminal of any width."""

import re
from datetime import UTC, datetime
from itertools import zip_longest

from vramscope.exporters.blocks.cells import LAYERS, cells, run_length
from vramscope.exporters.blocks.figures import amount, pool_figures, pool_title, request_words
from vramscope.exporters.blocks.glyphs import glyph, paint
from vramscope.exporters.blocks.page_table import PageTable, Pool
from vramscope.exporters.blocks.palette import LOOKS
from vramscope.exporters.blocks.rows import request_rows
from vramscope.exporters.blocks.usage import pool_sample, request_usage
from vramscope.exporters.pictures.style import Style

__all__ = ["by_block", "by_request"]

PANEL = 40
"""Columns of the figures; beside the map where it leaves the map at least as many."""
NUMBERS = 9
"""Columns of the block numbers left of a map."""
NAMES = 26
REQUESTS = 6
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def by_block(table: PageTable, style: Style, columns: int, lines: int, age_s: float) -> str:
    """Return the pools in memory order.

    Args:
        table: the page table.
        style: what the terminal shows.
        columns: its width.
        lines: its height; more is used only where a pool wants it.
        age_s: time since the page table's moment.
    """
    width = _map_width(columns)
    text = _heading(table, age_s)
    for pool in table.pools:
        map_ = _pool_map(table, pool, style, width, max(8, lines - 8))
        text += _beside(map_, _panel(table, pool, style), width, columns)
    return "\n".join([*text, *_legend(style), ""])


def by_request(table: PageTable, style: Style, columns: int, lines: int, age_s: float) -> str:
    """Return the block tables, the longest first; arguments as of ``by_block``."""
    width = _map_width(columns)
    rows = request_rows(table)
    room = max(8, width - NAMES)
    run = run_length(max((len(row.places) for row in rows), default=1), room)
    map_ = [f"{len(rows):,} block tables", _scale(run), ""]
    shown = rows[: max(8, lines - 8)]
    for row in shown:
        request = row.request
        group = "" if row.group is None else f"g{row.group}"
        what = (request.adapter or "") if request.is_running else request.state.replace("_", " ")
        tokens = "" if request.computed_tokens is None else f"{request.computed_tokens:,}"
        name = f"{request.name[:8]} {group:<2} {what:<6.6} {tokens:>6}"
        line = "".join(glyph(cell, style) for cell in cells(row.places, run))
        map_.append(f"{name:<{NAMES}.{NAMES}}{line}")
    if rest := rows[len(shown) :]:
        blocks = sum(len(row.places) for row in rest)
        map_.append(f"and {len(rest):,} more with {blocks:,} blocks")
    panels = [line for pool in table.pools for line in _panel(table, pool, style)]
    text = _heading(table, age_s) + _beside(map_, panels, width, columns)
    return "\n".join([*text, *_legend(style), ""])


def _map_width(columns: int) -> int:
    return columns - PANEL - 3 if columns >= 2 * PANEL + NUMBERS else columns


def _heading(table: PageTable, age_s: float) -> list[str]:
    when = datetime.fromtimestamp(table.time_unix_s, UTC).strftime("%H:%M:%S UTC")
    return [
        f"{table.engine}  {table.model}  vLLM {table.vllm_version}",
        f"at {when}, {age_s:.1f} s ago",
        "",
    ]


def _pool_map(table: PageTable, pool: Pool, style: Style, width: int, lines: int) -> list[str]:
    blocks = pool.blocks
    across = max(10, (width - NUMBERS) // 10 * 10)
    run = run_length(len(blocks), across * lines)
    made = cells(blocks, run, blocks[0].number if blocks else 0)
    map_ = [pool_title(table, pool), _scale(run), ""]
    for start in range(0, len(made), across):
        row = made[start : start + across]
        line = "".join(glyph(cell, style) for cell in row)
        map_.append(f"{row[0].first:>{NUMBERS - 1},} {line}")
    return map_


def _panel(table: PageTable, pool: Pool, style: Style) -> list[str]:
    kv = pool_sample(pool)
    lines = []
    for name in LAYERS:
        look = LOOKS[name]
        sign = paint(
            (look.character if style.unicode else look.ascii) * 2,
            style,
            look.ansi,
            look.ansi_fill if name == "slack" else None,
        )
        blocks = float(getattr(kv, name))
        lines.append(f"{sign} {name:<22}{amount(blocks):>8}{blocks / max(1, kv.blocks):>7.1%}")
    lines.append("")
    lines += [f"{name:<33}{value:>7}" for name, value in pool_figures(pool)]
    if usage := request_usage(table):
        lines += ["", f"{'largest requests':<19}{'tokens':>7}{'blocks':>7}{'slack':>7}"]
        for used in usage[:REQUESTS]:
            name, tokens, held, slack = request_words(used)
            lines.append(f"{name:<19}{tokens:>7}{held:>7}{slack:>7}")
    return lines


def _beside(map_: list[str], panel: list[str], width: int, columns: int) -> list[str]:
    """Return the panel right of the map, or below it where there is no room."""
    if width == columns:
        return [*map_, "", *panel, ""]
    pairs = zip_longest(map_, panel, fillvalue="")
    joined = [f"{left}{' ' * (width + 3 - _width(left))}{right}".rstrip() for left, right in pairs]
    return [*joined, ""]


def _width(text: str) -> int:
    return len(ESCAPES.sub("", text))


def _legend(style: Style) -> list[str]:
    partly, begun = "▃" if style.unicode else "=", LOOKS["slack"].ascii
    signs = (("2 3 .. +", "held by so many"), (partly, "partly filled"), (begun, "not begun"))
    return ["   ".join(f"{sign} {meaning}" for sign, meaning in signs)]


def _scale(run: int) -> str:
    return "a cell is a block" if run == 1 else f"a cell is {run:,} blocks: its two largest parts"
