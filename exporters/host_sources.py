"""The sources of this host as the options name them, opened and let go."""

import argparse
import contextlib
import logging
import os
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from vramscope.exporters.engine.host import HostRecords
from vramscope.exporters.engine.native.follow import Follower
from vramscope.exporters.engine.native.target import parse_targets
from vramscope.exporters.engine.rundir import run_dir
from vramscope.exporters.errors import SourceUnavailableError, VramscopeError
from vramscope.exporters.exporter import Exporter
from vramscope.exporters.gpu.choose import open_source
from vramscope.exporters.gpu.compat import DcgmCompat, default_counters
from vramscope.exporters.gpu.compat_csv import Counters, read_counters
from vramscope.exporters.gpu.fabric import FabricSource
from vramscope.exporters.gpu.host_place import host_place
from vramscope.exporters.gpu.owners import OwnerSource
from vramscope.exporters.gpu.topology import Topology
from vramscope.exporters.hardware import Hardware
from vramscope.exporters.native import NativeEngines

__all__ = ["compat_counters", "host_name", "open_exporter"]

log = logging.getLogger("vramscope.sources")

COSTLY_PERIOD_S = 1.0
SCRAPE_PERIOD_S = 1.0
"""Making its page costs an engine's API server milliseconds: never more often than this."""


@contextlib.contextmanager
def open_exporter(options: argparse.Namespace) -> Iterator[tuple[Exporter, Follower]]:
    """Open what the options of ``export_options.add_sources`` name.

    Yields:
        What reads all of it, and what asks for engines' own pages.

    Raises:
        VramscopeError: options that don't go together.
    """
    if options.period < COSTLY_PERIOD_S and options.gpu_source != "none":
        log.warning("--period %g: below 1 s reading costs the GPUs' work", options.period)
    counters = compat_counters(options.compat, options.collectors)
    compat = DcgmCompat(counters, host_name()) if counters else None
    follower = Follower(parse_targets(options.scrape), max(options.period, SCRAPE_PERIOD_S))
    source = open_source(
        options.gpu_source,
        options.dcgm_address,
        period_s=options.period,
        dcgm_fields=counters.field_ids if counters else (),
        per_link=options.links,
    )
    place = partial(host_place, options.rack, options.island)
    owners = OwnerSource(options.kubelet_socket, options.hpc_job_dir)
    hardware = Hardware(source, owners, FabricSource(), _topology, host_name(), place)
    records = HostRecords(options.run_dir or run_dir())
    try:
        native = NativeEngines(follower)
        yield Exporter(records.read, hardware, native, compat, options.period), follower
    finally:
        hardware.close()
        records.close()


def host_name() -> str:
    """Return the ``hostname`` label: in a pod the host's own name is the pod's, so the node's."""
    return os.environ.get("NODE_NAME") or socket.gethostname()


def compat_counters(compat: str | None, collectors: Path | None) -> Counters | None:
    """Return what ``--compat`` and ``--collectors`` ask for; None when for nothing.

    Raises:
        VramscopeError: a file of counters without ``--compat dcgm``, or that can't be read.
    """
    if compat is None:
        if collectors:
            raise VramscopeError("--collectors: want it with --compat dcgm only")
        return None
    counters = read_counters(collectors) if collectors else default_counters()
    for row in counters.left_out:
        log.warning("--compat dcgm leaves out %s", row)
    return counters


def _topology() -> Topology:
    try:
        from vramscope.exporters.gpu.nvml_topology import read_topology
    except ModuleNotFoundError as error:
        raise SourceUnavailableError(f"{error}: pip install nvidia-ml-py") from error
    return read_topology()
