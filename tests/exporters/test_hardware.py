"""What the hardware's part of a page does on good and bad days; sources are arguments."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from vramscope.exporters.engine.host import Reading
from vramscope.exporters.errors import SourceUnavailableError
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.exposition.hardware import add_hardware
from vramscope.exporters.gpu.choose import NoSource
from vramscope.exporters.gpu.compat import DcgmCompat, default_counters
from vramscope.exporters.gpu.fabric import FabricSource
from vramscope.exporters.gpu.host_place import HostPlace
from vramscope.exporters.gpu.owners import OwnerSource
from vramscope.exporters.gpu.source import GpuSource
from vramscope.exporters.gpu.topology import GpuPlace, Topology
from vramscope.exporters.hardware import TOPOLOGY_PERIOD_S, Hardware
from vramscope.exporters.page_maker import PageMaker
from vramscope.exporters.refresh import Refresh
from vramscope.exporters.signals.gpu import GpuIdentity, GpuReading, GpuSample

GPU = GpuIdentity(0, "GPU-a", "H100")
TOPOLOGY = Topology((GpuPlace(0, "GPU-a", numa_node=1),))


class Source:
    """Reads what a test has put there."""

    name = "nvml"

    def __init__(self) -> None:
        self.reading: GpuReading | SourceUnavailableError = GpuReading(
            (GpuSample(GPU, 1.0, temperature_celsius={"gpu": 60.0}),)
        )

    def read(self) -> GpuReading:
        if isinstance(self.reading, SourceUnavailableError):
            raise self.reading
        return self.reading

    def close(self) -> None:
        pass


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Hardware]:
    def hardware(
        source: GpuSource,
        topology: Callable[[], Topology] = lambda: TOPOLOGY,
        clock: Callable[[], float] = lambda: 2.0,
        place: Callable[..., HostPlace] = lambda _: HostPlace(),
    ) -> Hardware:
        owners = OwnerSource(tmp_path / "no-kubelet.sock", clock=clock)
        fabric = FabricSource(tmp_path / "no-fabric", clock)
        return Hardware(source, owners, fabric, topology, "host-1", place, clock)

    return hardware


def names(families: Families) -> set[str]:
    return {family.metric.name for family in families}


def show(hardware: Hardware, families: Families) -> Sequence[Reading]:
    """Read, add to the page, and return what was read and what was not."""
    reading = hardware.read(())
    add_hardware(families, reading, 2.0)
    return reading.readings


def test_gpus_and_their_places_are_on_the_page(make: Callable[..., Hardware]) -> None:
    families = Families()
    readings = show(make(Source()), families)
    assert {"vramscope_gpu_temperature_celsius", "vramscope_gpu_numa_node"} <= names(families)
    errors = {reading.source: reading.error for reading in readings}
    assert errors["gpu"] is None
    assert errors["topology"] is None


def test_kubelet_that_is_away_is_an_error_beside_the_gpus(make: Callable[..., Hardware]) -> None:
    families = Families()
    readings = show(make(Source()), families)
    (kubelet,) = [reading for reading in readings if reading.source == "kubelet"]
    assert "no-kubelet.sock" in (kubelet.error or "")
    assert "vramscope_gpu_temperature_celsius" in names(families)


def test_source_that_is_away_is_one_error_and_nothing_made_up(
    make: Callable[..., Hardware],
) -> None:
    source, families = Source(), Families()
    source.reading = SourceUnavailableError("no driver")
    readings = show(make(source), families)
    assert [(reading.source, reading.error) for reading in readings] == [("gpu", "no driver")]
    assert names(families) == set()


def test_lost_gpu_is_an_error_of_its_own(make: Callable[..., Hardware]) -> None:
    source = Source()
    sample = GpuSample(GPU, 1.0, temperature_celsius={"gpu": 60.0})
    source.reading = GpuReading((sample,), {"GPU-b": "fell off the bus"})
    families = Families()
    readings = show(make(source), families)
    errors = {reading.source: reading.error for reading in readings}
    assert errors["gpu"] is None
    assert errors["gpu:GPU-b"] == "fell off the bus"
    assert "vramscope_gpu_temperature_celsius" in names(families)


def test_topology_that_cannot_be_read_hides_nothing_else(make: Callable[..., Hardware]) -> None:
    def broken() -> Topology:
        raise SourceUnavailableError("no NVML")

    families = Families()
    readings = show(make(Source(), broken), families)
    assert {reading.source: reading.error for reading in readings}["topology"] == "no NVML"
    assert "vramscope_gpu_temperature_celsius" in names(families)


def test_topology_is_read_now_and_then_and_shown_always(make: Callable[..., Hardware]) -> None:
    clock, reads = Clock(), []

    def topology() -> Topology:
        reads.append(clock())
        return TOPOLOGY

    hardware = make(Source(), topology, clock)
    for clock.now_s in (0.0, 1.0, TOPOLOGY_PERIOD_S):
        families = Families()
        show(hardware, families)
        assert "vramscope_gpu_numa_node" in names(families)
    assert reads == [0.0, TOPOLOGY_PERIOD_S]


def test_without_gpus_there_is_no_source_to_fail(make: Callable[..., Hardware]) -> None:
    families = Families()
    assert list(show(make(NoSource()), families)) == []
    assert names(families) == set()


def test_dcgm_exporters_families_are_beside_ours_when_wanted(
    make: Callable[..., Hardware],
) -> None:
    maker = PageMaker("1.2.3", DcgmCompat(default_counters(), "host-1"))
    page = maker.page(Refresh(2.0, hardware=make(Source()).read(()))).page().decode()
    (line,) = [line for line in page.splitlines() if line.startswith("DCGM_FI_DEV_GPU_TEMP{")]
    assert 'UUID="GPU-a"' in line
    assert line.endswith(" 60.0")


def test_place_of_the_host_is_on_the_page_when_known(make: Callable[..., Hardware]) -> None:
    families = Families()
    show(make(NoSource(), place=lambda _: HostPlace("r12", "")), families)
    (family,) = families
    assert family.metric.name == "vramscope_host_topology_info"
    assert family.labels == [("host-1", "r12", "")]
