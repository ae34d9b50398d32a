"""The panel beside a picture: the legend with its numbers, the figures, the largest requests."""

from vramscope.exporters.blocks.cells import LAYERS
from vramscope.exporters.blocks.figures import amount, pool_figures, pool_title, request_words
from vramscope.exporters.blocks.page_table import PageTable, Pool
from vramscope.exporters.blocks.palette import LOOKS, MEANINGS
from vramscope.exporters.blocks.usage import pool_sample, request_usage
from vramscope.exporters.pictures.drawing import Box, Label, Shape
from vramscope.exporters.pictures.look import INK, MUTED, PAPER

__all__ = ["side_panel"]

REQUESTS = 8
LINE = 20


def side_panel(table: PageTable, x: float, top: float, width: float) -> tuple[list[Shape], float]:
    """Return the panel's shapes and where it ends."""
    shapes: list[Shape] = []
    y = top
    for pool in table.pools:
        added, y = _pool(table, pool, x, y, width)
        shapes += added
    added, y = _requests(table, x, y, width)
    shapes += added
    swatch = LOOKS["live"].fill
    shapes += [
        Box(x, y, 16, 16, swatch),
        Label(x + 8, y + 12, "3", 10, PAPER, "middle", bold=True),
        Label(x + 26, y + 12, "how many hold a shared block; or a white dot", 11, MUTED),
    ]
    return shapes, y + 20


def _pool(
    table: PageTable, pool: Pool, x: float, y: float, width: float
) -> tuple[list[Shape], float]:
    kv = pool_sample(pool)
    amounts = {name: float(getattr(kv, name)) for name in LAYERS}
    title = pool_title(table, pool).partition(":")[0] if len(table.pools) > 1 else "All blocks"
    shapes: list[Shape] = [Label(x, y, title, 13, INK, bold=True)]
    y += 12
    left = x
    for name in LAYERS:
        share = width * amounts[name] / max(1, kv.blocks)
        shapes.append(
            Box(round(left, 2), y, round(share, 2), 16, name, f"{name} {amount(amounts[name])}")
        )
        left += share
    y += 34
    for name in LAYERS:
        share = amounts[name] / max(1, kv.blocks)
        shapes += [
            Box(x, y - 8, 16, 16, name),
            Label(x + 26, y, name, 12.5, INK, bold=True),
            Label(x + width - 56, y, amount(amounts[name]), 12.5, INK, "end"),
            Label(x + width, y, f"{share:.1%}", 12.5, MUTED, "end"),
            Label(x + 26, y + 14, MEANINGS[name], 10.5, MUTED),
        ]
        y += 36
    y += 4
    for name, value in pool_figures(pool):
        shapes += [Label(x, y, name, 12, MUTED), Label(x + width, y, value, 12, INK, "end")]
        y += LINE
    return shapes, y + 18


def _requests(table: PageTable, x: float, y: float, width: float) -> tuple[list[Shape], float]:
    usage = request_usage(table)
    if not usage:
        return [], y
    stops = (x + width - 130, x + width - 60, x + width)
    shapes: list[Shape] = [Label(x, y, "Largest requests", 13, INK, bold=True)]
    for stop, word in zip(stops, ("tokens", "blocks", "slack"), strict=True):
        shapes.append(Label(stop, y, word, 10.5, MUTED, "end"))
    y += LINE
    for used in usage[:REQUESTS]:
        name, *numbers = request_words(used)
        shapes.append(Label(x, y, name, 12, INK))
        for stop, word in zip(stops, numbers, strict=True):
            shapes.append(Label(stop, y, word, 12, INK, "end"))
        y += LINE
    if len(usage) > REQUESTS:
        shapes.append(Label(x, y, f"and {len(usage) - REQUESTS:,} more", 11, MUTED))
        y += LINE
    return shapes, y + 8
