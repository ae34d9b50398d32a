"""A host's GPU topology under the catalog's names."""

from vramscope.exporters.catalog import gpu as catalog
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.gpu.host_place import HostPlace
from vramscope.exporters.gpu.topology import Topology

__all__ = ["add_host_place", "add_topology"]


def add_topology(families: Families, topology: Topology, hostname: str) -> None:
    """Add the level of each pair of GPUs, both ways, and the NUMA nodes."""
    for one in topology.gpus:
        families.add(catalog.GPU_NUMA_NODE, one.numa_node, str(one.index), hostname)
        for other in topology.gpus:
            if one.index != other.index:
                level = topology.level(one.index, other.index)
                pair = (str(one.index), str(other.index))
                families.add(catalog.GPU_TOPOLOGY, 1, *pair, hostname, level)


def add_host_place(families: Families, place: HostPlace, hostname: str) -> None:
    """Add the levels above the host, if any is known."""
    if place.rack or place.island:
        families.add(catalog.HOST_TOPOLOGY, 1, hostname, place.rack, place.island)
