"""GPUs, who uses them, and the fabric of this host, read for one refresh."""

import time
from collections.abc import Callable, Iterable

from vramscope.exporters.engine.host import Reading
from vramscope.exporters.errors import SourceUnavailableError
from vramscope.exporters.gpu.engines import engine_gpus
from vramscope.exporters.gpu.fabric import FabricSource
from vramscope.exporters.gpu.follower import GpuFollower
from vramscope.exporters.gpu.host_place import HostPlace
from vramscope.exporters.gpu.owners import GpuOwners, OwnerSource
from vramscope.exporters.gpu.source import GpuSource
from vramscope.exporters.gpu.topology import Topology
from vramscope.exporters.refresh import HardwareReading
from vramscope.exporters.signals.fabric import FabricPort
from vramscope.exporters.signals.gpu import GpuReading
from vramscope.exporters.signals.samples import EngineSample

__all__ = ["Hardware"]

TOPOLOGY_PERIOD_S = 300.0
"""Topology changes when hardware does, or when a link goes down; reading it asks each pair."""


class Hardware:
    """Reads each of its sources once a refresh; one that fails never hides the others.

    Args:
        gpus: the GPU source.
        owners: who uses them.
        fabric: ports to other hosts.
        topology: returns how the GPUs hang together; called every five minutes.
        hostname: label of the GPUs' series.
        place: says where the host stands, given its fabric's ports.
        clock: monotonic, seconds.
    """

    def __init__(
        self,
        gpus: GpuSource,
        owners: OwnerSource,
        fabric: FabricSource,
        topology: Callable[[], Topology],
        hostname: str,
        place: Callable[[Iterable[FabricPort]], HostPlace],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._gpus = gpus
        self._owners = owners
        self._fabric = fabric
        self._ask_topology = topology
        self._hostname = hostname
        self._place = place
        self._clock = clock
        self._follower = GpuFollower()
        self._topology: Topology | None = None
        self._topology_reading = Reading("topology")
        self._topology_at_s: float | None = None

    def read(self, engines: Iterable[EngineSample]) -> HardwareReading:
        """Read everything now.

        Args:
            engines: of this host, to be joined with the GPUs they run on.
        """
        gpus, readings = self._read_gpus()
        owners, topology = GpuOwners(), None
        if gpus.samples or gpus.errors:
            owners = self._owners.read()
            topology, reading = self._read_topology()
            readings += [*owners.readings, reading]
        fabric = self._fabric.read()
        return HardwareReading(
            hostname=self._hostname,
            gpus=gpus,
            owners=owners,
            topology=topology,
            # Engines name their GPUs themselves, so that the join needs no GPU source.
            engine_gpus=tuple(engine_gpus(engines, gpus.samples)),
            ports=fabric.ports,
            place=self._place(fabric.ports),
            readings=(*readings, *fabric.readings),
        )

    def close(self) -> None:
        """Let go of the GPU source."""
        self._gpus.close()

    def _read_gpus(self) -> tuple[GpuReading, list[Reading]]:
        if self._gpus.name == "none":
            return GpuReading(()), []
        try:
            raw = self._gpus.read()
        except SourceUnavailableError as error:
            return GpuReading(()), [Reading("gpu", error=str(error))]
        reading = self._follower.follow(raw, self._gpus.name)
        lost = [Reading(f"gpu:{gpu}", error=why) for gpu, why in reading.errors.items()]
        return reading, [Reading("gpu"), *lost]

    def _read_topology(self) -> tuple[Topology | None, Reading]:
        now = self._clock()
        if self._topology_at_s is None or now - self._topology_at_s >= TOPOLOGY_PERIOD_S:
            self._topology_at_s = now
            try:
                self._topology = self._ask_topology()
                self._topology_reading = Reading("topology")
            except SourceUnavailableError as error:
                self._topology = None
                self._topology_reading = Reading("topology", error=str(error))
        return self._topology, self._topology_reading
