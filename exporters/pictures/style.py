"""What a terminal can show, and the option by which a person says so."""

import argparse
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Style", "add_color_option", "style_of"]


class Style(NamedTuple):
    """What a terminal can show.

    Attributes:
        unicode: block characters.
        colour: 256 colours.
    """

    unicode: bool
    colour: bool


def add_color_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--color``."""
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="auto: in a terminal, unless NO_COLOR is set (default auto)",
    )


def style_of(
    color: str, environment: Mapping[str, str], terminal: bool, encoding: str | None
) -> Style:
    """Return what a stream can show.

    Args:
        color: the option's value.
        environment: of this process.
        terminal: whether the stream is one.
        encoding: of the stream.
    """
    automatic = terminal and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
    colour = automatic if color == "auto" else color == "always"
    unicode = (encoding or "").lower().replace("-", "") == "utf8"
    return Style(unicode=unicode, colour=colour)
