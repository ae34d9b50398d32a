"""``vramscope replay``: a recording's pages again, served or printed."""

import argparse
import asyncio
import json
import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from vramscope.exporters.errors import VramscopeError
from vramscope.exporters.export_options import add_compat, add_endpoint
from vramscope.exporters.gpu.compat import DcgmCompat
from vramscope.exporters.host_sources import compat_counters
from vramscope.exporters.recording.reader import Recording
from vramscope.exporters.recording.replay import Replay
from vramscope.exporters.recording.summary import summarise
from vramscope.exporters.serving import serve_exporter

__all__ = ["main"]

DESCRIPTION = """\
Serves the pages that `vramscope export` would have served when the file was recorded, byte for
byte, at the pace of then, and ends with the recording.
"""
EPILOG = """\
examples:
  vramscope replay storm.rec                  serve on 127.0.0.1:19400
  vramscope replay storm.rec --speed 10
  vramscope replay storm.rec --info           what is in it
  vramscope replay storm.rec --once --at 90   print the page of 90 s after its beginning
"""
END = float("inf")


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    if options.at is not None and not options.once:
        raise VramscopeError("vramscope replay: --at: want it with --once")
    if options.json and not (options.once or options.info):
        raise VramscopeError("vramscope replay: --json: want it with --once or --info")
    if options.once or options.info:
        logging.getLogger("vramscope").setLevel(logging.ERROR)  # what failed then is on the page
    with Recording(options.file) as recording:
        if options.info:
            summary = summarise(recording)
            sys.stdout.write(summary.as_json() if options.json else summary.as_text())
            return 0
        counters = compat_counters(options.compat, options.collectors)
        compat = DcgmCompat(counters, recording.started.hostname) if counters else None
        replay = Replay(recording, compat, options.speed)
        if options.once:
            replay.go_to(END if options.at is None else options.at)
            document = json.dumps(replay.signals(), indent=2) + "\n" if options.json else ""
            sys.stdout.write(document or replay.page.page().decode())
            return 0
        asyncio.run(serve_exporter(replay, options, command="replay"))
        if replay.wait_s(time.monotonic()) is None:
            sys.stdout.write("vramscope replay: end of the recording\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vramscope replay",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="of vramscope record")
    parser.add_argument(
        "--speed", type=_positive, default=1.0, help="recorded seconds a second (default 1)"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--once", action="store_true", help="print one page and stop")
    what.add_argument("--info", action="store_true", help="say what is in the file and stop")
    parser.add_argument(
        "--at",
        metavar="SECONDS",
        type=_offset,
        help="with --once: since the beginning (default: the end)",
    )
    parser.add_argument(
        "--json", action="store_true", help="with --once: /signals instead; with --info: as JSON"
    )
    add_endpoint(parser)
    add_compat(parser)
    return parser


def _positive(text: str) -> float:
    number = _offset(text)
    if not number:
        raise argparse.ArgumentTypeError(f"{text!r}: want a number over 0, e.g. 10")
    return number


def _offset(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < END:
        raise argparse.ArgumentTypeError(f"{text!r}: want a number from 0, e.g. 10")
    return number
