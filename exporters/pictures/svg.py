"""A drawing as SVG: few elements, nothing outside the file, a tooltip for each cell."""

from collections.abc import Iterator, Mapping
from xml.sax.saxutils import escape, quoteattr

from vramscope.exporters.pictures.drawing import Box, Dot, Drawing, Shape
from vramscope.exporters.pictures.look import PAPER, Hatch, Look

__all__ = ["svg"]

NAMESPACE = "http://www.w3.org/2000/svg"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
TILE = 6
"""Side of a texture's tile, pixels."""
LINES = {
    Hatch.DOTS: f'<circle cx="{TILE / 2:g}" cy="{TILE / 2:g}" r="1.1" fill="{{ink}}"/>',
    Hatch.RISING: '<path d="M-1,1 L1,-1 M0,6 L6,0 M5,7 L7,5" stroke="{ink}" stroke-width="1.4"/>',
    Hatch.CROSSED: '<path d="M0,6 L6,0 M0,0 L6,6" stroke="{ink}" stroke-width="1.2"/>',
}


def svg(drawing: Drawing) -> str:
    """Return the document."""
    width, height = drawing.width, drawing.height
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return "\n".join(
        [
            f'<svg xmlns="{NAMESPACE}" {size} role="img" font-family="{FONT}">',
            f"<title>{escape(drawing.title)}</title>",
            "<defs>",
            *_patterns(drawing.looks),
            "</defs>",
            f'<rect width="{width}" height="{height}" fill="{PAPER}"/>',
            *(_element(shape, drawing.looks) for shape in drawing.shapes),
            "</svg>",
            "",
        ]
    )


def _patterns(looks: Mapping[str, Look]) -> Iterator[str]:
    for name, look in looks.items():
        if look.hatch is not Hatch.NONE:
            yield (
                f'<pattern id="{name}" width="{TILE}" height="{TILE}" '
                f'patternUnits="userSpaceOnUse"><rect width="{TILE}" height="{TILE}" '
                f'fill="{look.fill}"/>{LINES[look.hatch].format(ink=look.ink)}</pattern>'
            )


def _element(shape: Shape, looks: Mapping[str, Look]) -> str:
    if isinstance(shape, Box):
        place = (
            f'<rect x="{shape.x:g}" y="{shape.y:g}" width="{shape.width:g}" '
            f'height="{shape.height:g}" fill="{_paint(shape.paint, looks)}"'
        )
        title = f"<title>{escape(shape.title)}</title></rect>" if shape.title else ""
        return f"{place}>{title}" if title else f"{place}/>"
    if isinstance(shape, Dot):
        return (
            f'<circle cx="{shape.x:g}" cy="{shape.y:g}" r="{shape.radius:g}" '
            f'fill="{_paint(shape.paint, looks)}" pointer-events="none"/>'
        )
    anchor = "" if shape.anchor == "start" else f' text-anchor="{shape.anchor}"'
    weight = ' font-weight="600"' if shape.bold else ""
    return (
        f'<text x="{shape.x:g}" y="{shape.y:g}" font-size="{shape.size:g}"{anchor}{weight} '
        f'fill={quoteattr(shape.paint)} pointer-events="none">{escape(shape.text)}</text>'
    )


def _paint(name: str, looks: Mapping[str, Look]) -> str:
    look = looks.get(name)
    if look is None:
        return name
    return look.fill if look.hatch is Hatch.NONE else f"url(#{name})"
