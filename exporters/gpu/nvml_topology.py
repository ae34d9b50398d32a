"""The topology of this host's GPUs, by NVML and sysfs."""

import contextlib
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pynvml  # type: ignore[import-untyped]  # one module, without types

from vramscope.exporters.gpu.nvml_calls import NvmlCalls, UnreadableGpuError, bus_id, unavailable
from vramscope.exporters.gpu.nvml_links import NvLinks
from vramscope.exporters.gpu.topology import SYSFS, GpuPlace, Topology, numa_node
from vramscope.exporters.signals.gpu import LinkSample, PcieSample
from vramscope.exporters.signals.links import pcie_capacity

__all__ = ["read_topology"]

PATHS = {
    pynvml.NVML_TOPOLOGY_INTERNAL: "PIX",  # two GPUs of one board, behind its bridge
    pynvml.NVML_TOPOLOGY_SINGLE: "PIX",
    pynvml.NVML_TOPOLOGY_MULTIPLE: "PXB",
    pynvml.NVML_TOPOLOGY_HOSTBRIDGE: "PHB",
    pynvml.NVML_TOPOLOGY_NODE: "NODE",
    pynvml.NVML_TOPOLOGY_SYSTEM: "SYS",
}


def read_topology(sysfs: Path = SYSFS, clock: Callable[[], float] = time.monotonic) -> Topology:
    """Return how this host's GPUs hang together.

    Args:
        sysfs: where sysfs is mounted.
        clock: monotonic, in seconds.

    Raises:
        SourceUnavailableError: no library, no driver or no rights.
    """
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise unavailable(error) from error
    try:
        gpus, errors = [], {}
        for index in range(pynvml.nvmlDeviceGetCount()):
            try:
                gpus.append(_Gpu(index, sysfs, clock))
            except UnreadableGpuError as error:
                errors[index] = str(error)
        return _assemble(gpus, errors)
    except pynvml.NVMLError as error:
        raise unavailable(error) from error
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


class _Gpu:
    """A GPU and what NVML calls it while it is looked at."""

    def __init__(self, index: int, sysfs: Path, clock: Callable[[], float]) -> None:
        self.calls = calls = NvmlCalls(clock)
        self.handle = handle = calls.need("nvmlDeviceGetHandleByIndex", index)
        links = NvLinks(calls, handle, clock, per_link=False)
        links.refresh_states()
        self.links: list[LinkSample] = [link for link in links.read({}).links if link.active]
        pci = bus_id(calls.ask("nvmlDeviceGetPciInfo", handle))
        pcie = PcieSample(
            max_generation=calls.ask("nvmlDeviceGetMaxPcieLinkGeneration", handle),
            max_width=calls.ask("nvmlDeviceGetMaxPcieLinkWidth", handle),
        )
        speeds = [link.bytes_per_second_capacity for link in self.links]
        known = [speed for speed in speeds if speed is not None]
        self.place = GpuPlace(
            index=index,
            uuid=calls.need("nvmlDeviceGetUUID", handle),
            name=calls.ask("nvmlDeviceGetName", handle) or "",
            pci_bus_id=pci,
            numa_node=numa_node(pci, sysfs),
            pcie_bytes_per_second=pcie_capacity(pcie),
            nvlinks=len(self.links),
            nvlink_bytes_per_second=sum(known) if known and len(known) == len(speeds) else None,
        )

    def nvlinks_to(self, other: "_Gpu") -> int:
        """Return how many NVLinks join two GPUs, directly or over switches."""
        status: Any = self.calls.ask(
            "nvmlDeviceGetP2PStatus",
            self.handle,
            other.handle,
            pynvml.NVML_P2P_CAPS_INDEX_NVLINK,
            remember=False,
        )
        if status != pynvml.NVML_P2P_STATUS_OK:
            return 0
        direct = sum(link.peer == other.place.pci_bus_id for link in self.links)
        over_switch = min(_to_switch(self.links), _to_switch(other.links))
        return direct or over_switch

    def path_to(self, other: "_Gpu") -> str | None:
        """Return the PCIe path between two GPUs."""
        level = self.calls.ask(
            "nvmlDeviceGetTopologyCommonAncestor", self.handle, other.handle, remember=False
        )
        return PATHS.get(level)


def _to_switch(links: list[LinkSample]) -> int:
    return sum(link.peer == "switch" for link in links)


def _assemble(gpus: list[_Gpu], errors: dict[int, str]) -> Topology:
    nvlinks, paths = {}, {}
    for one, other in combinations(gpus, 2):
        pair = (one.place.index, other.place.index)
        count = one.nvlinks_to(other)
        if count:
            nvlinks[pair] = count
        path = one.path_to(other)
        if path is not None:
            paths[pair] = path
    return Topology(tuple(gpu.place for gpu in gpus), nvlinks, paths, errors)
