"""A drawing as PNG, by Pillow."""

import io
from collections.abc import Mapping
from functools import cache

from PIL import Image, ImageDraw, ImageFont

from vramscope.exporters.pictures.drawing import Box, Dot, Drawing, Label
from vramscope.exporters.pictures.look import PAPER, Hatch, Look

__all__ = ["png"]

SCALE = 2
"""Pixels of the image per pixel of the drawing: for screens with fine ones, and print."""
TILE = 6 * SCALE
ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}


def png(drawing: Drawing) -> bytes:
    """Return the file."""
    size = drawing.width * SCALE, drawing.height * SCALE
    image = Image.new("RGB", size, PAPER)
    pen = ImageDraw.Draw(image)
    for shape in drawing.shapes:
        if isinstance(shape, Label):
            _write(pen, shape)
        elif isinstance(shape, Dot):
            reach = shape.radius * SCALE
            x, y = shape.x * SCALE, shape.y * SCALE
            pen.ellipse((x - reach, y - reach, x + reach, y + reach), fill=shape.paint)
        elif shape.paint != "none":
            _fill(image, pen, shape, drawing.looks)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def _write(pen: ImageDraw.ImageDraw, label: Label) -> None:
    pen.text(
        (label.x * SCALE, label.y * SCALE),
        label.text,
        fill=label.paint,
        font=_font(label.size),
        anchor=ANCHORS[label.anchor],
        stroke_width=0.5 if label.bold else 0,
    )


@cache
def _font(size: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size * SCALE)


def _fill(
    image: Image.Image, pen: ImageDraw.ImageDraw, box: Box, looks: Mapping[str, Look]
) -> None:
    left, top = round(box.x * SCALE), round(box.y * SCALE)
    right, bottom = round((box.x + box.width) * SCALE), round((box.y + box.height) * SCALE)
    if right <= left or bottom <= top:
        return
    look = looks.get(box.paint)
    if look is None or look.hatch is Hatch.NONE:
        colour = box.paint if look is None else look.fill
        pen.rectangle((left, top, right - 1, bottom - 1), fill=colour)
        return
    # As in SVG, a texture's tiles are laid from the drawing's corner.
    x, y = left % TILE, top % TILE
    ground = _texture(look, x + right - left, y + bottom - top)
    image.paste(ground.crop((x, y, x + right - left, y + bottom - top)), (left, top))


@cache
def _texture(look: Look, width: int, height: int) -> Image.Image:
    tile = _tile(look)
    ground = Image.new("RGB", (width, height))
    for x in range(0, width, TILE):
        for y in range(0, height, TILE):
            ground.paste(tile, (x, y))
    return ground


@cache
def _tile(look: Look) -> Image.Image:
    """Return a texture's tile, drawn large and reduced so that its lines are smooth."""
    fine = 4
    side = TILE * fine
    tile = Image.new("RGB", (side, side), look.fill)
    pen = ImageDraw.Draw(tile)
    width = round(1.3 * SCALE * fine)
    if look.hatch is Hatch.DOTS:
        reach = 1.1 * SCALE * fine
        pen.ellipse(
            (side / 2 - reach, side / 2 - reach, side / 2 + reach, side / 2 + reach), look.ink
        )
    else:
        for shift in (-side, 0, side):  # the neighbours' lines reach in at the corners
            pen.line((shift, side, shift + side, 0), look.ink, width)
            if look.hatch is Hatch.CROSSED:
                pen.line((shift, 0, shift + side, side), look.ink, width)
    return tile.resize((TILE, TILE), Image.Resampling.LANCZOS)
