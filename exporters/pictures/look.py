"""How a thing looks in a drawing: a colour, and a texture or character that tells it apart too.

The colours are of Okabe and Ito's set, which people with any common colour blindness can tell
apart; the textures still do in grey and on paper.
"""

from enum import StrEnum
from typing import NamedTuple

__all__ = ["INK", "MUTED", "PAPER", "Hatch", "Look"]

PAPER = "#ffffff"
INK = "#1f2933"
MUTED = "#66727f"


class Hatch(StrEnum):
    """The lines of a texture."""

    NONE = "none"
    DOTS = "dots"
    RISING = "rising"
    CROSSED = "crossed"


class Look(NamedTuple):
    """Of one layer of a cell.

    Attributes:
        fill: colour of its ground.
        ink: colour of its hatch; of its character in a terminal.
        hatch: its texture.
        ansi: the ink among a terminal's 256 colours.
        ansi_fill: the ground among them.
        character: in a terminal.
        ascii: in a terminal without Unicode.
    """

    fill: str
    ink: str
    hatch: Hatch
    ansi: int
    ansi_fill: int
    character: str
    ascii: str
