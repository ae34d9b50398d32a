"""``vramscope topology``: how the GPUs of this host hang together."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vramscope.exporters.export_options import add_place_options
from vramscope.exporters.gpu.fabric import FabricSource
from vramscope.exporters.gpu.host_place import host_place
from vramscope.exporters.gpu.nvml_topology import read_topology
from vramscope.exporters.gpu.topology import SYSFS, render, topology_document

__all__ = ["main"]

DESCRIPTION = """\
Prints how near the GPUs of this host are to each other (as nvidia-smi topo -m does), their NUMA
nodes, what their links carry, and the host's rack and island. Needs NVIDIA's driver.
"""


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit code.

    Raises:
        SourceUnavailableError: there is no NVML to ask.
    """
    parser = argparse.ArgumentParser(
        prog="vramscope topology",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with the groups by level")
    parser.add_argument(
        "--sysfs",
        metavar="FOLDER",
        type=Path,
        default=SYSFS,
        help="where sysfs is mounted (default /sys; in a container, where the host's is)",
    )
    add_place_options(parser)
    options = parser.parse_args(argv)
    ports = FabricSource(options.sysfs / "class" / "infiniband").read().ports
    place = host_place(options.rack, options.island, ports)
    topology = replace(read_topology(options.sysfs), place=place)
    if options.json:
        sys.stdout.write(json.dumps(topology_document(topology), indent=2) + "\n")
    else:
        sys.stdout.write(render(topology))
    return 0
