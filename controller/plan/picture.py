"""A plan as a picture: the GPU's memory as a stacked bar, and one bar for each quantisation."""

from collections.abc import Iterator, Mapping

from vramscope.controller.plan.looks import PART_LOOKS, PARTS
from vramscope.controller.plan.plan import Plan
from vramscope.controller.plan.units import gib
from vramscope.exporters.pictures.drawing import Box, Drawing, Label, Shape
from vramscope.exporters.pictures.look import INK, MUTED, PAPER

__all__ = ["picture"]

WIDTH = 960
LEFT, RIGHT = 24, 936
BAR = 46
SMALL_BAR = 22
NAME_WIDTH = 250
WORDS_FROM = 70
"""Pixels from which a part has its size written in it."""


def picture(plan: Plan) -> Drawing:
    """Return the drawing."""
    model, target = plan.model, plan.target
    shapes: list[Shape] = [
        Label(LEFT, 36, f"{model.architecture} on {target.name}", 20, INK, bold=True),
        Label(LEFT, 58, _line(plan), 13, MUTED),
    ]
    scale = max(target.total_bytes, _taken(plan.budget.parts))
    shapes += _bar(plan.budget.parts, LEFT, 76, RIGHT - LEFT, BAR, scale, words=True)
    shapes += _mark(target.total_bytes, scale, LEFT, 76, RIGHT - LEFT, BAR)
    y = 76 + BAR + 26
    shapes += _legend(plan.budget.parts, y)
    y += 22 * ((len(PARTS) + 1) // 2) + 26
    shapes.append(Label(LEFT, y, "What each quantisation would buy", 15, INK, bold=True))
    longest = max(plan.requests)
    for one in plan.variants:
        y += SMALL_BAR + 12
        # The others' parts are as before: only weights and pool differ.
        parts = {**plan.budget.parts, "weights": one.weight_bytes, "kv_pool": one.kv_pool_bytes}
        left = LEFT + NAME_WIDTH
        width = RIGHT - left - 170
        shapes.append(Label(LEFT, y, one.name, 13, INK))
        shapes += _bar(parts, left, y - 16, width, SMALL_BAR, scale, words=False)
        fits = f"{one.requests[longest]:,} of {longest:,} tokens"
        words = fits if one.kv_pool_bytes > 0 else "does not fit"
        shapes.append(Label(RIGHT, y, words, 13, MUTED, anchor="end"))
    title = f"vramscope plan: {model.architecture} on {target.name}"
    return Drawing(WIDTH, int(y) + 30, title, tuple(shapes), PART_LOOKS)


def _line(plan: Plan) -> str:
    spread = plan.shape.parallelism
    if not plan.budget.fits:
        return f"does not fit: {gib(-plan.budget.parts['kv_pool'])} too little a GPU"
    return (
        f"a GPU of TP {spread.tensor} x PP {spread.pipeline}: {gib(plan.target.total_bytes)}; "
        f"{plan.token_bytes:,} bytes a token; {plan.budget.blocks:,} blocks; "
        f"{plan.tokens:,} tokens"
    )


def _taken(parts: Mapping[str, int]) -> int:
    return sum(size for size in parts.values() if size > 0)


def _bar(
    parts: Mapping[str, int],
    left: float,
    top: float,
    width: float,
    height: float,
    scale: int,
    *,
    words: bool,
) -> Iterator[Shape]:
    x = left
    for part in PARTS:
        size = max(0, parts[part.name])
        long = size / scale * width
        if long <= 0:
            continue
        yield Box(x, top, long, height, part.name, f"{part.title}: {gib(size)}")
        if words and long >= WORDS_FROM:
            middle = x + long / 2
            yield Box(middle - 30, top + height / 2 - 10, 60, 20, PAPER)
            yield Label(middle, top + height / 2 + 5, gib(size), 12, INK, anchor="middle")
        x += long


def _mark(
    total: int, scale: int, left: float, top: float, width: float, height: float
) -> Iterator[Shape]:
    """Show where the GPU ends, where more is wanted than it has."""
    if scale > total:
        x = left + total / scale * width
        yield Box(x - 1, top - 8, 2, height + 16, INK)
        yield Label(x - 4, top - 10, "end of the GPU", 11, INK, anchor="end")


def _legend(parts: Mapping[str, int], top: float) -> Iterator[Shape]:
    half = (len(PARTS) + 1) // 2
    for number, part in enumerate(PARTS):
        x = LEFT + (number // half) * 460
        y = top + number % half * 22
        yield Box(x, y - 11, 14, 14, part.name)
        size = parts[part.name]
        words = gib(size) if size >= 0 else f"{gib(-size)} too little"
        yield Label(x + 22, y, f"{part.title}: {words}", 13, INK)
