"""The GPUs of a host, who uses them, and its fabric, as metric families."""

from vramscope.exporters.exposition.fabric import add_fabric
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.exposition.gpus import add_gpus
from vramscope.exporters.exposition.owners import add_engine_gpus, add_gpu_users
from vramscope.exporters.exposition.topology import add_host_place, add_topology
from vramscope.exporters.refresh import HardwareReading

__all__ = ["add_hardware"]


def add_hardware(families: Families, reading: HardwareReading, now_s: float) -> None:
    """Add all of one reading.

    Args:
        families: where to.
        reading: of the hardware.
        now_s: what ages are counted to, monotonic clock.
    """
    host, gpus, owners = reading.hostname, reading.gpus, reading.owners
    if gpus.samples or gpus.errors:
        add_gpus(families, gpus, host, owners.owner, now_s)
        add_gpu_users(families, [sample.gpu for sample in gpus.samples], owners, host)
    if reading.topology is not None:
        add_topology(families, reading.topology, host)
    add_engine_gpus(families, reading.engine_gpus)
    add_fabric(families, reading.ports, host)
    add_host_place(families, reading.place, host)
