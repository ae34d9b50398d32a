"""``vramscope record``: what this host's sources say for a while, to a file."""

import argparse
import asyncio
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from vramscope.exporters.engine.native.follow import Follower
from vramscope.exporters.export_options import add_sources
from vramscope.exporters.exporter import Exporter
from vramscope.exporters.host_sources import host_name, open_exporter
from vramscope.exporters.recording.writer import RecordingWriter, Started

__all__ = ["main"]

DESCRIPTION = """\
Writes what `vramscope export` reads, each period, to a file: engines, GPUs, their users, the
fabric, and what failed. `vramscope replay` makes the same pages of it again.
"""
EPILOG = """\
examples:
  vramscope record                            until Ctrl-C, to vramscope-HOST-TIME.rec
  vramscope record -o storm.rec --duration 600

A kill loses the last refresh at most; a full disk ends it, and what is written stays readable.
"""
KIB = 1024
SHOW_S = 0.5


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with open_exporter(options) as (exporter, follower):
        started = Started(
            version("vramscope"), host_name(), time.time(), time.monotonic(), options.period
        )
        writer = RecordingWriter(options.output or _file_name(started), started)
        try:
            asyncio.run(_record(exporter, follower, writer, options, stop))
        finally:
            writer.close()
    sys.stdout.write(f"vramscope record: {_summary(writer, started, time.monotonic())}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vramscope record",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="a new file (default: by host and time)"
    )
    parser.add_argument(
        "--duration", metavar="SECONDS", type=_duration, help="end by itself (default: Ctrl-C)"
    )
    add_sources(parser)
    return parser


async def _record(
    exporter: Exporter,
    follower: Follower,
    writer: RecordingWriter,
    options: argparse.Namespace,
    stop: threading.Event,
) -> None:
    pages = asyncio.create_task(follower.follow())
    try:
        await asyncio.to_thread(_record_until, exporter, writer, options.duration, stop)
    finally:
        pages.cancel()


def _record_until(
    exporter: Exporter,
    writer: RecordingWriter,
    duration_s: float | None,
    stop: threading.Event,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Write a refresh each period, until ``stop`` or the end of the time."""
    start_s = clock()
    show = _Progress(writer, start_s)
    try:
        while not stop.is_set():
            writer.write(exporter.refresh())
            now_s = clock()
            show(now_s)
            wait_s = exporter.wait_s(now_s)
            if duration_s is not None and now_s + wait_s - start_s > duration_s:
                break
            stop.wait(wait_s)
    finally:
        show.end()


class _Progress:
    """On a terminal, one line that counts."""

    def __init__(self, writer: RecordingWriter, start_s: float) -> None:
        self._writer = writer
        self._start_s = start_s
        self._shown_s = float("-inf")

    def __call__(self, now_s: float) -> None:
        if sys.stderr.isatty() and now_s - self._shown_s >= SHOW_S:
            self._shown_s = now_s
            sys.stderr.write(
                f"\r{now_s - self._start_s:.0f} s, {self._writer.refreshes} refreshes, "
                f"{self._writer.size_bytes / KIB:.0f} KiB; Ctrl-C ends"
            )
            sys.stderr.flush()

    def end(self) -> None:
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")


def _summary(writer: RecordingWriter, started: Started, now_s: float) -> str:
    return (
        f"{writer.path}: {writer.refreshes} refreshes in {now_s - started.monotonic_s:.0f} s, "
        f"{writer.size_bytes / KIB:.0f} KiB"
    )


def _file_name(started: Started) -> Path:
    when = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(started.unix_s))
    host = "".join(c if c.isalnum() or c in "-." else "-" for c in started.hostname)
    return Path(f"vramscope-{host}-{when}.rec")


def _duration(text: str) -> float:
    try:
        duration_s = float(text)
    except ValueError:
        duration_s = 0.0
    if not 0 < duration_s < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r}: want seconds, e.g. 600")
    return duration_s
