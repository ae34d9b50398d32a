"""A page table as a drawing: the map on the left, what it adds up to on the right."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from vramscope.exporters.blocks.cells import LAYERS, Cell, cells, run_length
from vramscope.exporters.blocks.figures import amount, pool_title
from vramscope.exporters.blocks.page_table import PageTable, Pool
from vramscope.exporters.blocks.palette import LOOKS
from vramscope.exporters.blocks.rows import Row, request_rows
from vramscope.exporters.blocks.side_panel import side_panel
from vramscope.exporters.pictures.drawing import Box, Dot, Drawing, Label, Shape
from vramscope.exporters.pictures.look import INK, MUTED, PAPER

__all__ = ["by_block", "by_request"]

WIDTH = 1200
MARGIN = 32
TOP = 112
SIDE = 300
"""Width of the panel on the right."""
LEFT = 48
"""Width of the numbers left of a map's rows."""
MAP = WIDTH - 2 * MARGIN - SIDE - 36 - LEFT
MAP_HEIGHT = 640
PITCHES = ((36, 20), (24, 30), (18, 40), (14, 50), (12, 60))
"""(side of a cell with its gap, cells a row), from few blocks to many."""
NAMES = 176
"""Width of the names left of the rows of requests."""
ROW = 22
MOST_ROWS = 30
READABLE = 14
"""Cells of at least this side have the number of a block's holders written on them."""


def by_block(table: PageTable) -> Drawing:
    """Draw the pools in memory order."""
    shapes: list[Shape] = []
    y = float(TOP)
    for pool in table.pools:
        map_, height = _pool_map(table, pool, y, MAP_HEIGHT / len(table.pools))
        shapes += map_
        y += height
    return _framed(table, shapes, y)


def by_request(table: PageTable) -> Drawing:
    """Draw the block tables, the longest first."""
    rows = request_rows(table)
    shown = rows[:MOST_ROWS]
    longest = max((len(row.places) for row in rows), default=1)
    room = MAP + LEFT - NAMES
    pitch = max(7, min(18, room // longest))
    run = run_length(longest, room // pitch)
    shapes: list[Shape] = [
        Label(MARGIN, TOP, f"{len(rows):,} block tables", 13, INK, bold=True),
        Label(
            MARGIN + NAMES,
            TOP,
            f"in the order of each request's tokens; {_scale(run)}",
            11,
            MUTED,
        ),
    ]
    y = TOP + 18.0
    for row in shown:
        shapes += _row(row, y, run, pitch)
        y += ROW
    if rest := rows[MOST_ROWS:]:
        blocks = sum(len(row.places) for row in rest)
        more = f"and {len(rest):,} more with {blocks:,} blocks"
        shapes.append(Label(MARGIN + NAMES, y + 14, more, 11, MUTED))
        y += ROW
    if not rows:
        shapes.append(Label(MARGIN, y + 14, "No request holds a block.", 12, MUTED))
    return _framed(table, shapes, y)


def _framed(table: PageTable, shapes: Sequence[Shape], bottom: float) -> Drawing:
    """Add the heading and the panel; return the whole."""
    when = datetime.fromtimestamp(table.time_unix_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    title = f"Page table of {table.engine}"
    about = f"{table.model}  ·  vLLM {table.vllm_version}  ·  {when}"
    panel, panel_bottom = side_panel(table, WIDTH - MARGIN - SIDE, TOP, SIDE)
    heading = [
        Label(MARGIN, 48, title, 24, INK, bold=True),
        Label(MARGIN, 74, about, 13, MUTED),
    ]
    height = int(max(bottom, panel_bottom)) + MARGIN
    return Drawing(WIDTH, height, f"{title}, {when}", (*heading, *shapes, *panel), LOOKS)


def _pool_map(table: PageTable, pool: Pool, top: float, height: float) -> tuple[list[Shape], float]:
    """Return a pool's map and its height."""
    blocks = pool.blocks
    rooms = [(pitch, columns, columns * int(height // pitch)) for pitch, columns in PITCHES]
    run = run_length(len(blocks), rooms[-1][2])
    count = -(-len(blocks) // run)
    pitch, columns, _ = next(room for room in rooms if count <= room[2])
    shapes: list[Shape] = [
        Label(MARGIN, top, pool_title(table, pool), 13, INK, bold=True),
        Label(MARGIN + LEFT + MAP, top, f"in memory order; {_scale(run)}", 11, MUTED, "end"),
    ]
    first = blocks[0].number if blocks else 0
    every = -(-14 // pitch)
    for index, cell in enumerate(cells(blocks, run, first)):
        row, column = divmod(index, columns)
        x, y = MARGIN + LEFT + column * pitch, top + 16 + row * pitch
        if column == 0 and row % every == 0:
            base = y + pitch / 2 + 2.5
            shapes.append(Label(MARGIN + LEFT - 8, base, f"{cell.first:,}", 10, MUTED, "end"))
        shapes += _cell(cell, x, y, pitch, pitch)
    return shapes, 16 + -(-count // columns) * pitch + 36


def _row(row: Row, y: float, run: int, pitch: int) -> Iterator[Shape]:
    request = row.request
    yield Label(MARGIN, y + 14, request.name[:8], 11.5, INK)
    tokens = "" if request.computed_tokens is None else f"{request.computed_tokens:,} tokens"
    what = [
        "" if row.group is None else f"group {row.group}",
        "" if request.is_running else request.state.replace("_", " "),
        request.adapter or "",
        tokens,
    ]
    words = ", ".join(filter(None, what))
    yield Label(MARGIN + 66, y + 14, words, 10, MUTED)
    for index, cell in enumerate(cells(row.places, run)):
        yield from _cell(cell, MARGIN + NAMES + index * pitch, y, pitch, ROW - 3)


def _cell(cell: Cell, x: float, y: float, pitch: float, height: float) -> Iterator[Shape]:
    """Draw a cell as layers, each as high as its share; the tooltip lies above them."""
    gap = 2 if pitch >= READABLE else 1
    width, height = pitch - gap, height - gap
    title = _tooltip(cell)
    shares = cell.shares()
    if cell.gone:
        yield Box(x, y, width, height, "#dfe3e7", title)
        yield Box(x + 1, y + 1, width - 2, height - 2, PAPER, title)
    bottom = y + height
    for layer in LAYERS:
        if layer in shares:
            high = height * shares[layer]
            bottom -= high
            yield Box(x, round(bottom, 2), width, round(high, 2), layer, title)
    if cell.shared * 2 > cell.blocks - cell.gone:
        middle = x + width / 2, y + height / 2
        if cell.blocks == 1 and pitch >= READABLE:
            size = min(11, pitch * 0.6)
            text = str(cell.references) if cell.references < 100 else "+"
            base = middle[1] + size * 0.36
            yield Label(middle[0], base, text, size, PAPER, "middle", bold=True)
        else:
            yield Dot(*middle, max(1.2, pitch * 0.16), PAPER)


def _tooltip(cell: Cell) -> str:
    last = cell.first + cell.blocks - 1
    place = f"{cell.first:,}" if cell.blocks == 1 else f"{cell.first:,} to {last:,}"
    parts = [f"{name} {amount(share * cell.blocks)}" for name, share in cell.shares().items()]
    if cell.gone:
        parts.append(f"left the window {cell.gone}")
    if cell.shared:
        parts.append(f"{cell.references} holders" if cell.blocks == 1 else f"shared {cell.shared}")
    return f"{place}: {', '.join(parts)}"


def _scale(run: int) -> str:
    return "each cell is one block" if run == 1 else f"each cell is {run:,} blocks, by their share"
