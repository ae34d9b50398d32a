"""``vramscope blocks``: an engine's page table as a picture."""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from vramscope.exporters.blocks import picture, terminal
from vramscope.exporters.blocks.ask import ask, find_engine
from vramscope.exporters.blocks.document import document
from vramscope.exporters.engine.rundir import run_dir
from vramscope.exporters.pictures.file import picture_file, save, want_library
from vramscope.exporters.pictures.style import add_color_option, style_of

__all__ = ["main"]

DESCRIPTION = """\
Shows which KV block of an engine holds what, for whom: in the terminal, or as SVG or PNG.
The engine copies its page table in its next step, so an idle one is seen when it has work
again. It needs the probe, and a user who can read its record.
"""
EPILOG = """\
examples:
  vramscope blocks chat-0                     the blocks in memory order
  vramscope blocks chat-0 --by request        each request's block table in a row
  vramscope blocks chat-0 -o blocks.png       a picture (PNG: pip install 'vramscope[pictures]')
  vramscope blocks chat-0 --json | jq .pools  the numbers
"""
DRAW = {"block": picture.by_block, "request": picture.by_request}
SHOW = {"block": terminal.by_block, "request": terminal.by_request}


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit code.

    Raises:
        PageTableError: there is no page table to show.
        PictureError: the picture can't be written.
        MissingExtraError: PNG without Pillow.
    """
    options = _parser().parse_args(argv)
    if options.output is not None:
        want_library(options.output, "blocks")  # before the engine is asked
    path = find_engine(options.run_dir or run_dir(), options.engine)
    table = ask(path, options.timeout)
    age_s = max(0.0, time.monotonic() - table.time_s)
    if options.output is not None:
        save(DRAW[options.by](table), options.output)
    if options.json:
        sys.stdout.write(json.dumps(document(table, age_s)) + "\n")
    elif options.output is None:
        size = shutil.get_terminal_size((120, 40))
        style = style_of(options.color, os.environ, sys.stdout.isatty(), sys.stdout.encoding)
        show = SHOW[options.by]
        sys.stdout.write(show(table, style, size.columns, size.lines, age_s))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vramscope blocks",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("engine", metavar="ENGINE", help="its id, as its engine label has it")
    parser.add_argument(
        "--by",
        choices=("block", "request"),
        default="block",
        help="blocks in memory order, or a row for each request's table (default block)",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=picture_file,
        help="write a picture, .svg or .png, and print nothing",
    )
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    add_color_option(parser)
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=10.0,
        help="how long to wait for the engine's next step (default 10)",
    )
    parser.add_argument(
        "--run-dir",
        metavar="FOLDER",
        type=Path,
        help="where engines write their records (default: as vramscope export)",
    )
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r}: want seconds from 0.1 to 3600, e.g. 10")
    return seconds
