"""Writes a drawing to a file, by the kind that its name ends in."""

import argparse
from pathlib import Path

from vramscope.exporters.errors import MissingExtraError, VramscopeError
from vramscope.exporters.pictures.drawing import Drawing
from vramscope.exporters.pictures.svg import svg

__all__ = ["PictureError", "picture_file", "save", "want_library"]


class PictureError(VramscopeError):
    """A picture can't be written."""


def picture_file(text: str) -> Path:
    """Return an argument as a picture's file.

    Raises:
        ArgumentTypeError: its name says no kind that is known.
    """
    file = Path(text)
    if file.suffix not in (".svg", ".png"):
        raise argparse.ArgumentTypeError(f"{text!r}: want a name that ends in .svg or .png")
    return file


def want_library(file: Path, command: str) -> None:
    """Check that the file can be written before the work for it is done.

    Raises:
        MissingExtraError: PNG without Pillow.
    """
    if file.suffix == ".png":
        try:
            import PIL  # noqa: F401  # asked for only when a PNG is
        except ModuleNotFoundError as error:
            raise MissingExtraError(f"{command} -o FILE.png", "pictures", "PIL") from error


def save(drawing: Drawing, file: Path) -> None:
    """Write the picture.

    Raises:
        PictureError: it can't be written there.
    """
    try:
        if file.suffix == ".svg":
            file.write_text(svg(drawing), encoding="utf-8")
        else:
            from vramscope.exporters.pictures.png import png

            file.write_bytes(png(drawing))
    except OSError as error:
        raise PictureError(f"{file}: {error.strerror}: want a place to write to") from error
