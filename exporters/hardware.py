"""GPUs, who uses them, and the fabric of this host, read for one refresh."""

import time
from collections.abc import Callable, Iterable, Sequence

from vramscope.exporters.engine.host import Reading
from vramscope.exporters.errors import SourceUnavailableError
from vramscope.exporters.exposition.fabric import add_fabric
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.exposition.gpus import add_gpus
from vramscope.exporters.exposition.owners import add_engine_gpus, add_gpu_users
from vramscope.exporters.exposition.render import FamilyText
from vramscope.exporters.exposition.topology import add_host_place, add_topology
from vramscope.exporters.gpu.compat import DcgmCompat
from vramscope.exporters.gpu.engines import engine_gpus
from vramscope.exporters.gpu.fabric import FabricSource
from vramscope.exporters.gpu.follower import GpuFollower
from vramscope.exporters.gpu.host_place import HostPlace
from vramscope.exporters.gpu.owners import OwnerSource
from vramscope.exporters.gpu.source import GpuSource
from vramscope.exporters.gpu.topology import Topology
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
        compat: makes dcgm-exporter's families beside ours, if they are wanted.
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
        compat: DcgmCompat | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._gpus = gpus
        self._owners = owners
        self._fabric = fabric
        self._read_topology = topology
        self._hostname = hostname
        self._place = place
        self._compat = compat
        self._clock = clock
        self.texts: Sequence[FamilyText] = ()
        """dcgm-exporter's families of the last ``add_to``."""
        self._follower = GpuFollower()
        self._topology: Topology | None = None
        self._topology_reading = Reading("topology")
        self._topology_at_s: float | None = None

    def add_to(self, families: Families, engines: Iterable[EngineSample]) -> Sequence[Reading]:
        """Read everything now and add its families.

        Args:
            families: where to.
            engines: of this host, to be joined with the GPUs they run on.

        Returns:
            What was read and what was not.
        """
        reading, readings = self._read_gpus()
        self.texts = ()
        if reading.samples or reading.errors:
            owners = self._owners.read()
            readings += owners.readings
            gpus = [sample.gpu for sample in reading.samples]
            add_gpus(families, reading, self._hostname, owners.owner, self._clock())
            add_gpu_users(families, gpus, owners, self._hostname)
            if self._compat is not None:
                self.texts = tuple(self._compat.texts(reading, owners.owner))
            readings += self._add_topology(families)
        # Engines name their GPUs themselves, so that the join needs no GPU source.
        add_engine_gpus(families, engine_gpus(engines, reading.samples))
        fabric = self._fabric.read()
        add_fabric(families, fabric.ports, self._hostname)
        add_host_place(families, self._place(fabric.ports), self._hostname)
        return [*readings, *fabric.readings]

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

    def _add_topology(self, families: Families) -> list[Reading]:
        now = self._clock()
        if self._topology_at_s is None or now - self._topology_at_s >= TOPOLOGY_PERIOD_S:
            self._topology_at_s = now
            try:
                self._topology = self._read_topology()
                self._topology_reading = Reading("topology")
            except SourceUnavailableError as error:
                self._topology = None
                self._topology_reading = Reading("topology", error=str(error))
        if self._topology is not None:
            add_topology(families, self._topology, self._hostname)
        return [self._topology_reading]
