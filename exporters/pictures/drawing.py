"""A drawing: boxes, dots and words, for SVG and PNG alike. Lengths are in pixels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from vramscope.exporters.pictures.look import Look

__all__ = ["Anchor", "Box", "Dot", "Drawing", "Label", "Shape"]

Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True)
class Box:
    """A filled rectangle.

    Attributes:
        paint: a layer's name (its colour and texture) or a colour.
        title: what a reader who points at it is told.
    """

    x: float
    y: float
    width: float
    height: float
    paint: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Dot:
    """A filled circle around (x, y)."""

    x: float
    y: float
    radius: float
    paint: str


@dataclass(frozen=True, slots=True)
class Label:
    """Words on a base line at y.

    Attributes:
        x: where they start, have their middle or end, as ``anchor`` says.
        size: of the font.
    """

    x: float
    y: float
    text: str
    size: float
    paint: str
    anchor: Anchor = "start"
    bold: bool = False


Shape = Box | Dot | Label


@dataclass(frozen=True, slots=True)
class Drawing:
    """Shapes on paper, the later above the earlier.

    Attributes:
        looks: of the layers that boxes name as their paint.
    """

    width: int
    height: int
    title: str
    shapes: tuple[Shape, ...]
    looks: Mapping[str, Look]
