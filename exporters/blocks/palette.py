"""How each use of a block looks."""

from vramscope.exporters.pictures.look import Hatch, Look

__all__ = ["LOOKS", "MEANINGS"]

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
