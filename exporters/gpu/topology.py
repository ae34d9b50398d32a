"""How near GPUs are to each other and to the CPUs: what a scheduler places by."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from vramscope.exporters.gpu.host_place import HostPlace

__all__ = [
    "LEGEND",
    "PCIE_LEVELS",
    "SYSFS",
    "GpuPlace",
    "Grouping",
    "Topology",
    "numa_node",
    "render",
    "topology_document",
]

SYSFS = Path("/sys")

PCIE_LEVELS = ("PIX", "PXB", "PHB", "NODE", "SYS")
"""Paths between GPUs without NVLink, from near to far."""
SAME_SWITCH = ("PIX", "PXB")

LEGEND = """\
  X    = the GPU itself
  NV#  = # bonded NVLinks
  PIX  = one PCIe bridge at most
  PXB  = several PCIe bridges, no PCIe host bridge
  PHB  = a PCIe host bridge (as a rule, the CPU)
  NODE = PCIe host bridges of one NUMA node
  SYS  = the interconnect between NUMA nodes
  ?    = not known
"""

Grouping = Literal["nvlink", "pcie_switch", "numa", "host"]


@dataclass(frozen=True, slots=True)
class GpuPlace:
    """One GPU and its links.

    Attributes:
        index: on its host.
        uuid: ``GPU-...``.
        name: product name.
        pci_bus_id: ``00000000:1B:00.0``.
        numa_node: that it hangs on; None when not known, as on hosts that have but one.
        pcie_bytes_per_second: one direction, at most.
        nvlinks: NVLinks that are up.
        nvlink_bytes_per_second: one direction, all of those.
    """

    index: int
    uuid: str
    name: str = ""
    pci_bus_id: str = ""
    numa_node: int | None = None
    pcie_bytes_per_second: float | None = None
    nvlinks: int = 0
    nvlink_bytes_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class Topology:
    """The GPUs of one host. A pair is (lower index, higher index).

    Attributes:
        gpus: by index, ascending.
        nvlinks: NVLinks between a pair, over a switch too; pairs without are absent.
        paths: PCIe path of a pair (``PIX`` to ``SYS``); absent when not known.
        errors: why a GPU that is there is not among ``gpus``, by index.
        place: the levels above the host.
    """

    gpus: tuple[GpuPlace, ...]
    nvlinks: Mapping[tuple[int, int], int] = field(default_factory=dict)
    paths: Mapping[tuple[int, int], str] = field(default_factory=dict)
    errors: Mapping[int, str] = field(default_factory=dict)
    place: HostPlace = field(default_factory=HostPlace)

    def level(self, one: int, other: int) -> str:
        """Return how near two GPUs are: ``X``, ``NV#``, ``PIX`` to ``SYS``, or ``?``."""
        if one == other:
            return "X"
        pair = (min(one, other), max(one, other))
        links = self.nvlinks.get(pair)
        return f"NV{links}" if links else self.paths.get(pair, "?")

    def groups(self, by: Grouping) -> tuple[tuple[int, ...], ...]:
        """Return the GPUs that share something, as indexes; one group a GPU where it is alone.

        Args:
            by: ``nvlink``: a chain of NVLinks joins them; ``pcie_switch``: they reach each other
                without a host bridge; ``numa``: their NUMA node (GPUs whose node is not known
                are one group); ``host``: all.
        """
        indexes = [gpu.index for gpu in self.gpus]
        if by == "nvlink":
            return _joined(indexes, lambda pair: bool(self.nvlinks.get(pair)))
        if by == "pcie_switch":
            return _joined(indexes, lambda pair: self.paths.get(pair) in SAME_SWITCH)
        if by == "numa":
            nodes = {gpu.index: gpu.numa_node for gpu in self.gpus}
            return _joined(indexes, lambda pair: nodes[pair[0]] == nodes[pair[1]])
        return (tuple(indexes),) if indexes else ()


def numa_node(pci_bus_id: str, sysfs: Path) -> int | None:
    """Return the NUMA node of a PCI device.

    Args:
        pci_bus_id: as NVML gives it, with a domain of eight digits.
        sysfs: where sysfs is mounted.

    Returns:
        None when sysfs doesn't say (-1: the host has one node, or its firmware keeps silent).
    """
    domain, _, rest = pci_bus_id.lower().partition(":")
    file = sysfs / "bus" / "pci" / "devices" / f"{domain[-4:]}:{rest}" / "numa_node"
    try:
        node = int(file.read_text())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def topology_document(topology: Topology) -> dict[str, Any]:
    """Return a JSON-ready object: GPUs, the matrix of levels, and the groups."""
    indexes = [gpu.index for gpu in topology.gpus]
    return {
        "schema": 1,
        "gpus": [
            {name: getattr(gpu, name) for name in GpuPlace.__slots__} for gpu in topology.gpus
        ],
        "levels": [[topology.level(one, other) for other in indexes] for one in indexes],
        "pcie_paths": [
            {"gpus": list(pair), "path": path} for pair, path in sorted(topology.paths.items())
        ],
        "groups": {
            by: [list(group) for group in topology.groups(by)]
            for by in ("nvlink", "pcie_switch", "numa", "host")
        },
        "rack": topology.place.rack,
        "island": topology.place.island,
        "errors": {str(index): error for index, error in topology.errors.items()},
    }


def render(topology: Topology) -> str:
    """Return the matrix, the GPUs with their links, and a legend, for people."""
    indexes = [gpu.index for gpu in topology.gpus]
    names = [f"GPU{index}" for index in indexes]
    matrix = [["", *names, "NUMA"]]
    for gpu, name in zip(topology.gpus, names, strict=True):
        levels = [topology.level(gpu.index, other) for other in indexes]
        matrix.append([name, *levels, "-" if gpu.numa_node is None else str(gpu.numa_node)])
    links = [["", "name", "PCI", "PCIe GB/s", "NVLinks", "NVLink GB/s"]]
    for gpu, name in zip(topology.gpus, names, strict=True):
        pcie, nvlink = (
            _gigabytes(gpu.pcie_bytes_per_second),
            _gigabytes(gpu.nvlink_bytes_per_second),
        )
        links.append([name, gpu.name, gpu.pci_bus_id, pcie, str(gpu.nvlinks), nvlink])
    lost = "".join(f"GPU{index}: {error}\n" for index, error in topology.errors.items())
    place = topology.place
    where = f"rack: {place.rack or '-'}  island: {place.island or '-'}\n"
    footer = f"GB/s: one direction, at most.\n{where}{lost}\n{LEGEND}"
    return f"{_columns(matrix)}\n{_columns(links)}\n{footer}"


def _joined(
    indexes: Sequence[int], near: Callable[[tuple[int, int]], bool]
) -> tuple[tuple[int, ...], ...]:
    """Return the connected components of the graph whose edges are the near pairs."""
    group = {index: {index} for index in indexes}
    for pair in combinations(indexes, 2):
        one, other = group[pair[0]], group[pair[1]]
        if one is not other and near(pair):
            one |= other
            for index in other:
                group[index] = one
    return tuple(sorted({tuple(sorted(members)) for members in group.values()}))


def _gigabytes(bytes_per_second: float | None) -> str:
    return "-" if bytes_per_second is None else f"{bytes_per_second / 1e9:.1f}"


def _columns(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
    return "\n".join(lines) + "\n"
