"""A cell as one character of a terminal."""

from vramscope.exporters.blocks.cells import LAYERS, Cell
from vramscope.exporters.blocks.palette import LOOKS
from vramscope.exporters.pictures.style import Style

__all__ = ["glyph", "paint"]

EIGHTHS = " ▁▂▃▄▅▆▇█"
WHITE = 231
GONE = " "


def glyph(cell: Cell, style: Style) -> str:
    """Return the character of a cell, with its colours.

    A cell in one state has the state's own. One that is partly live is filled to its share. In
    any other mix its two largest parts are shown, the lower one as high as its share of the two;
    where there are no colours to do that by, the largest alone.
    """
    shares = cell.shares()
    if not shares:
        return GONE
    if cell.blocks == 1 and cell.references > 1:
        text = str(cell.references) if cell.references < 10 else "+"
        return paint(text, style, WHITE, LOOKS[max(shares, key=lambda name: shares[name])].ansi)
    largest = sorted(shares, key=lambda name: -shares[name])[:2]
    if len(largest) == 1:
        return _pure(largest[0], style)
    lower, upper = sorted(largest, key=LAYERS.index)
    height = round(8 * shares[lower] / (shares[lower] + shares[upper]))
    if not style.unicode:
        return (
            paint("=", style, LOOKS["live"].ansi) if cell.blocks == 1 else _pure(largest[0], style)
        )
    if height in (0, 8) and cell.blocks > 1:
        return _pure(largest[0], style)
    text = EIGHTHS[min(7, max(1, height))]
    if style.colour:
        return paint(text, style, LOOKS[lower].ansi, LOOKS[upper].ansi_fill)
    return text if cell.blocks == 1 else _pure(largest[0], style)


def _pure(layer: str, style: Style) -> str:
    look = LOOKS[layer]
    ground = look.ansi_fill if layer == "slack" else None
    return paint(look.character if style.unicode else look.ascii, style, look.ansi, ground)


def paint(text: str, style: Style, ink: int, ground: int | None = None) -> str:
    """Return text in a terminal's colours, if it has any."""
    if not style.colour:
        return text
    behind = "" if ground is None else f";48;5;{ground}"
    return f"\x1b[38;5;{ink}{behind}m{text}\x1b[0m"
