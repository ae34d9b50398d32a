"""What one refresh read, as frozen values: a page is made of these and of nothing else.

A recording holds these, so that what is made of them can be made again.
"""

from dataclasses import dataclass, field

from vramscope.exporters.engine.host import Reading
from vramscope.exporters.gpu.engines import EngineGpu
from vramscope.exporters.gpu.host_place import HostPlace
from vramscope.exporters.gpu.owners import GpuOwners
from vramscope.exporters.gpu.topology import Topology
from vramscope.exporters.signals.fabric import FabricPort
from vramscope.exporters.signals.gpu import GpuReading
from vramscope.exporters.signals.native import NativeSample
from vramscope.exporters.signals.samples import EngineSample

__all__ = ["HardwareReading", "NativePage", "NativeReading", "Refresh"]


@dataclass(frozen=True, slots=True)
class HardwareReading:
    """The GPUs of a host, who uses them, and its fabric.

    Attributes:
        hostname: label of the GPUs' series.
        gpus: with counters that only go up.
        owners: who uses them.
        topology: how they hang together; None when not known, or without GPUs.
        engine_gpus: which engine runs on which.
        ports: of the fabric to other hosts.
        place: where the host stands.
        readings: what was read and what was not.
    """

    hostname: str
    gpus: GpuReading = field(default_factory=lambda: GpuReading(()))
    owners: GpuOwners = field(default_factory=GpuOwners)
    topology: Topology | None = None
    engine_gpus: tuple[EngineGpu, ...] = ()
    ports: tuple[FabricPort, ...] = ()
    place: HostPlace = field(default_factory=HostPlace)
    readings: tuple[Reading, ...] = ()


@dataclass(frozen=True, slots=True)
class NativePage:
    """What an engine's own page said last.

    Attributes:
        engine: the ``engine`` label.
        source: the ``source`` label of its reading.
        superseded: the engine's probe has a record here, and wins.
        samples: of the ranks that no probe shows.
        at_s: when the page was answered, monotonic clock.
    """

    engine: str
    source: str
    superseded: bool
    samples: tuple[NativeSample, ...]
    at_s: float


@dataclass(frozen=True, slots=True)
class NativeReading:
    """Engines read by their own pages.

    Attributes:
        pages: those that were answered.
        readings: one for each page that was asked for.
    """

    pages: tuple[NativePage, ...] = ()
    readings: tuple[Reading, ...] = ()


@dataclass(frozen=True, slots=True)
class Refresh:
    """All that one refresh read.

    Attributes:
        at_s: when all of it had been read, monotonic clock: what ages are counted to.
        engines: by their records.
        hardware: None where it was not asked for.
        native: engines by their own pages.
        last_refresh_s: how long the refresh before took; None at the first.
    """

    at_s: float
    engines: tuple[Reading, ...] = ()
    hardware: HardwareReading | None = None
    native: NativeReading = field(default_factory=NativeReading)
    last_refresh_s: float | None = None

    @property
    def samples(self) -> list[EngineSample]:
        """The engines that have a sample, whatever their error."""
        return [reading.sample for reading in self.engines if reading.sample is not None]

    @property
    def readings(self) -> tuple[Reading, ...]:
        """Of all sources."""
        hardware = self.hardware.readings if self.hardware is not None else ()
        return (*self.engines, *hardware, *self.native.readings)
