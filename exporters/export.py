"""``vramscope export``: engines and GPUs of this host, for Prometheus and for controllers."""

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Sequence

from vramscope.exporters.engine.native.follow import Follower
from vramscope.exporters.export_options import parser
from vramscope.exporters.exporter import Exporter
from vramscope.exporters.host_sources import open_exporter
from vramscope.exporters.serving import serve_exporter

__all__ = ["main"]


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    options = parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    if options.once:
        # One page: what was read goes to stdout, what was not to stderr, and nothing else.
        logging.getLogger("vramscope").setLevel(logging.WARNING)
    with open_exporter(options) as (exporter, follower):
        if options.once:
            asyncio.run(follower.once())
            return _once(exporter, options.json)
        asyncio.run(_serve(exporter, follower, options))
        return 0


def _once(exporter: Exporter, as_json: bool) -> int:
    """Print one page; errors go to the log, one line each."""
    exporter.refresh()
    if as_json:
        sys.stdout.write(json.dumps(exporter.signals(), indent=2) + "\n")
    else:
        sys.stdout.write(exporter.page.page().decode())
    return 1 if exporter.sources.errors else 0


async def _serve(exporter: Exporter, follower: Follower, options: argparse.Namespace) -> None:
    pages = asyncio.create_task(follower.follow())
    try:
        await serve_exporter(
            exporter,
            options,
            command="export",
            started=lambda endpoint: exporter.own.append(endpoint.connections.add_to),
        )
    finally:
        pages.cancel()
