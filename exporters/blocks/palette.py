"""How each use of a block looks: a colour, and a texture or character that tells it apart too.

The colours are of Okabe and Ito's set, which people with any common colour blindness can tell
apart; the textures still do in grey and on paper.
"""

from enum import StrEnum
from typing import NamedTuple

__all__ = ["INK", "LOOKS", "MEANINGS", "MUTED", "PAPER", "Hatch", "Look"]

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


LOOKS = {
    "live": Look("#0072b2", "#0072b2", Hatch.NONE, 32, 32, "█", "#"),
    "slack": Look("#d3e9f8", "#56a8d8", Hatch.DOTS, 32, 153, "_", "_"),
    "held": Look("#f3b48a", "#b34700", Hatch.CROSSED, 166, 216, "▚", "x"),
    "evictable": Look("#cfeee2", "#009e73", Hatch.RISING, 36, 158, "░", "o"),
    "clean": Look("#eef0f2", "#eef0f2", Hatch.NONE, 246, 254, "·", "."),
}
MEANINGS = {
    "live": "tokens of running requests",
    "slack": "the same blocks' empty slots",
    "held": "in use, but by no running request",
    "evictable": "free to take, with a cached prefix",
    "clean": "free to take, with nothing in it",
}
