"""``vramscope export``: engines and GPUs of this host, for Prometheus and for controllers."""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from functools import partial

from aiohttp import web

from vramscope.exporters.engine.host import HostRecords
from vramscope.exporters.engine.native.follow import Follower
from vramscope.exporters.engine.native.target import parse_targets
from vramscope.exporters.engine.rundir import run_dir
from vramscope.exporters.errors import SourceUnavailableError, VramscopeError
from vramscope.exporters.export_options import parser
from vramscope.exporters.exporter import Exporter
from vramscope.exporters.exposition.endpoint import SWITCH_INTERVAL_S, serve
from vramscope.exporters.exposition.limits import Limits
from vramscope.exporters.exposition.pages import Page
from vramscope.exporters.exposition.rendered import Rendered
from vramscope.exporters.gpu.choose import open_source
from vramscope.exporters.gpu.compat import DcgmCompat, default_counters
from vramscope.exporters.gpu.compat_csv import read_counters
from vramscope.exporters.gpu.fabric import FabricSource
from vramscope.exporters.gpu.host_place import host_place
from vramscope.exporters.gpu.owners import OwnerSource
from vramscope.exporters.gpu.topology import Topology
from vramscope.exporters.hardware import Hardware
from vramscope.exporters.native import NativeEngines

__all__ = ["main"]

log = logging.getLogger("vramscope.export")

STALE_PERIODS = 5
COSTLY_PERIOD_S = 1.0
SCRAPE_PERIOD_S = 1.0
"""Making its page costs an engine's API server milliseconds: never more often than this."""


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    options = parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    if options.once:
        # One page: what was read goes to stdout, what was not to stderr, and nothing else.
        logging.getLogger("vramscope").setLevel(logging.WARNING)
    elif options.period < COSTLY_PERIOD_S and options.gpu_source != "none":
        log.warning("--period %g: below 1 s reading costs the GPUs' work", options.period)
    records = HostRecords(options.run_dir or run_dir())
    follower = Follower(parse_targets(options.scrape), max(options.period, SCRAPE_PERIOD_S))
    hardware = _hardware(options)
    exporter = Exporter(records.read, hardware, NativeEngines(follower))
    try:
        if options.once:
            asyncio.run(follower.once())
            return _once(exporter, options.json)
        # A refresh is computing; a scrape that meets it waits for one such interval, not for 5 ms.
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        return asyncio.run(_serve(exporter, follower, options))
    finally:
        hardware.close()
        records.close()


def _hardware(options: argparse.Namespace) -> Hardware:
    # In a pod the host's own name is the pod's; the node's comes by the downward API.
    hostname = os.environ.get("NODE_NAME") or socket.gethostname()
    compat, fields = None, frozenset[int]()
    if options.compat == "dcgm":
        counters = read_counters(options.collectors) if options.collectors else default_counters()
        for row in counters.left_out:
            log.warning("--compat dcgm leaves out %s", row)
        compat, fields = DcgmCompat(counters, hostname), counters.field_ids
    elif options.collectors:
        raise VramscopeError("--collectors: want it with --compat dcgm only")
    source = open_source(
        options.gpu_source,
        options.dcgm_address,
        period_s=options.period,
        dcgm_fields=fields,
        per_link=options.links,
    )
    place = partial(host_place, options.rack, options.island)
    owners = OwnerSource(options.kubelet_socket, options.hpc_job_dir)
    return Hardware(source, owners, FabricSource(), _topology, hostname, place, compat)


def _topology() -> Topology:
    try:
        from vramscope.exporters.gpu.nvml_topology import read_topology
    except ModuleNotFoundError as error:
        raise SourceUnavailableError(f"{error}: pip install nvidia-ml-py") from error
    return read_topology()


def _once(exporter: Exporter, as_json: bool) -> int:
    """Print one page; errors go to the log, one line each."""
    exporter.refresh()
    if as_json:
        sys.stdout.write(json.dumps(exporter.signals(), indent=2) + "\n")
    else:
        sys.stdout.write(exporter.page.page().decode())
    return 1 if exporter.sources.errors else 0


async def _serve(exporter: Exporter, follower: Follower, options: argparse.Namespace) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    pages = asyncio.create_task(follower.follow())
    reading = asyncio.Lock()  # one read at a time: a refresh, or a request for /signals
    async with reading:
        await asyncio.to_thread(exporter.refresh)
    host, port = options.listen
    async with serve(
        _routes(exporter, reading, options.period),
        host=host,
        port=port,
        web_config_file=options.web_config_file,
        limits=Limits(max_connections=options.max_connections),
    ) as endpoint:
        exporter.own.append(endpoint.connections.add_to)
        loop.add_signal_handler(signal.SIGHUP, endpoint.reload_soon)
        sys.stdout.write(f"vramscope export: {endpoint.url}/metrics\n")
        sys.stdout.flush()
        await _refresh_until(stop, exporter, reading, options.period)
    pages.cancel()
    return 0


async def _refresh_until(
    stop: asyncio.Event, exporter: Exporter, reading: asyncio.Lock, period_s: float
) -> None:
    """Refresh each period; a slow source makes the next refresh late, never two at once."""
    next_s = time.monotonic()
    while not stop.is_set():
        next_s = max(next_s + period_s, time.monotonic())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), next_s - time.monotonic())
            return
        async with reading:
            await asyncio.to_thread(exporter.refresh)


def _routes(exporter: Exporter, reading: asyncio.Lock, period_s: float) -> dict[str, Page]:
    async def metrics() -> Rendered:
        return exporter.page

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

    return {"/metrics": metrics, "/signals": signals, "/healthz": healthz, "/readyz": readyz}
