"""``vramscope export``: the engines of this host, for Prometheus and for controllers."""

import argparse
import asyncio
import contextlib
import json
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from aiohttp import web

from vramscope.exporters.engine.host import HostRecords
from vramscope.exporters.engine.rundir import run_dir
from vramscope.exporters.errors import VramscopeError
from vramscope.exporters.exporter import Exporter
from vramscope.exporters.exposition.pages import METRICS_CONTENT_TYPE, pages

__all__ = ["main"]

log = logging.getLogger("vramscope.export")

STALE_PERIODS = 5
DESCRIPTION = """\
Finds the vLLM engines of this host by the records that vramscope's probe writes, and serves:

  /metrics   for Prometheus; the page is made once a refresh, whoever scrapes
  /signals   the same signals as JSON, read at the moment of the request
  /healthz   200 while the refresh loop lives
  /readyz    200 when at least one source reads

An engine has the probe when vramscope is installed in its Python environment
(pip install vramscope): nothing else is needed.
"""
EPILOG = """\
examples:
  vramscope export                        serve on 127.0.0.1:19400
  vramscope export --listen 0.0.0.0:19400 for a Prometheus on another host
  vramscope export --once                 print the page and stop; exit code 1 if a source fails
  vramscope export --once --json          print the signals as JSON
"""


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    records = HostRecords(options.run_dir or run_dir())
    exporter = Exporter(records.read)
    try:
        if options.once:
            return _once(exporter, options.json)
        host, port = options.listen
        return asyncio.run(_serve(exporter, host, port, options.period))
    finally:
        records.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vramscope export",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        type=_address,
        default=("127.0.0.1", 19400),
        help="where to serve; port 0 picks a free one (default 127.0.0.1:19400)",
    )
    parser.add_argument(
        "--run-dir",
        metavar="FOLDER",
        type=Path,
        help="where engines write their records (default: $VRAMSCOPE_RUN_DIR, else "
        "/run/vramscope if writable, else $XDG_RUNTIME_DIR/vramscope, else the temp dir)",
    )
    parser.add_argument(
        "--period",
        metavar="SECONDS",
        type=_period,
        default=1.0,
        help="time between refreshes (default 1)",
    )
    parser.add_argument("--once", action="store_true", help="print the page and stop")
    parser.add_argument("--json", action="store_true", help="with --once: print /signals instead")
    return parser


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r}: want HOST:PORT, e.g. 127.0.0.1:19400")
    return host.strip("[]"), int(port)


def _period(text: str) -> float:
    try:
        period_s = float(text)
    except ValueError:
        period_s = 0.0
    if not 0.1 <= period_s <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r}: want seconds from 0.1 to 3600, e.g. 1")
    return period_s


def _once(exporter: Exporter, as_json: bool) -> int:
    """Print one page; errors go to the log, one line each."""
    exporter.refresh()
    if as_json:
        sys.stdout.write(json.dumps(exporter.signals(), indent=2) + "\n")
    else:
        sys.stdout.write(exporter.page.decode())
    return 1 if exporter.sources.errors else 0


async def _serve(exporter: Exporter, host: str, port: int, period_s: float) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    reading = asyncio.Lock()  # one read at a time: a refresh, or a request for /signals
    async with reading:
        await asyncio.to_thread(exporter.refresh)

    async def refresh_until_stopped() -> None:
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), period_s)
            async with reading:
                await asyncio.to_thread(exporter.refresh)

    runner = web.AppRunner(_application(exporter, reading, period_s), access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            raise VramscopeError(
                f"vramscope export: can't listen on {host}:{port}: {error.strerror}: "
                "stop what listens there, or choose another with --listen HOST:PORT"
            ) from error
        sys.stdout.write(f"vramscope export: {_url(runner)}/metrics\n")
        sys.stdout.flush()
        refreshing = asyncio.create_task(refresh_until_stopped())
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait({refreshing, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stop.set()
        await refreshing  # raises what ended it
        return 0
    finally:
        await runner.cleanup()


def _application(exporter: Exporter, reading: asyncio.Lock, period_s: float) -> web.Application:
    async def metrics() -> web.Response:
        return web.Response(body=exporter.page, headers={"Content-Type": METRICS_CONTENT_TYPE})

    async def signals() -> web.Response:
        async with reading:
            document = await asyncio.to_thread(exporter.signals)
        return web.json_response(document)

    async def healthz() -> web.Response:
        age_s = exporter.age_s()
        if age_s is None or age_s > STALE_PERIODS * max(period_s, 1.0):
            return web.Response(status=503, text=f"no refresh for {age_s or 0:.1f} s\n")
        return web.Response(text="ok\n")

    async def readyz() -> web.Response:
        if exporter.sources.ready:
            return web.Response(text="ok\n")
        return web.Response(status=503, text="\n".join(exporter.sources.errors) + "\n")

    return pages({"/metrics": metrics, "/signals": signals, "/healthz": healthz, "/readyz": readyz})


def _url(runner: web.AppRunner) -> str:
    """Return where the runner really listens: the port may have been picked."""
    host, port = runner.addresses[0][:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
