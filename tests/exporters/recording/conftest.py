"""A host on which much happens, and recordings of it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vramscope.exporters.engine.host import HostRecords, Reading
from vramscope.exporters.engine.native.follow import Follower, Got
from vramscope.exporters.engine.native.target import Target
from vramscope.exporters.errors import SourceUnavailableError
from vramscope.exporters.exporter import Exporter
from vramscope.exporters.exposition.rendered import Form, Format
from vramscope.exporters.gpu.compat import DcgmCompat, default_counters
from vramscope.exporters.gpu.fabric import FabricSource
from vramscope.exporters.gpu.host_place import HostPlace
from vramscope.exporters.gpu.owner import Owner
from vramscope.exporters.gpu.owners import GpuOwners, OwnerSource
from vramscope.exporters.gpu.topology import GpuPlace, Topology
from vramscope.exporters.hardware import Hardware
from vramscope.exporters.native import NativeEngines
from vramscope.exporters.recording.writer import RecordingWriter, Started
from vramscope.exporters.signals.gpu import (
    GpuIdentity,
    GpuProcess,
    GpuReading,
    GpuSample,
    LinkSample,
    PcieSample,
)
from vramscope.exporters.signals.native import NativeSample

STARTED = Started("1.2.3", "host-1", 1.7e9, 1000.0, 1.0)
FORMS = tuple(Form(form, gzipped) for form in Format for gzipped in (False, True))


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        self.now_s += 0.001  # as it does: each look at it is later
        return self.now_s


class Gpus:
    """Two GPUs at work; fails when told to."""

    name = "nvml"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.broken = False
        self.lost = False
        self._reads = 0

    def read(self) -> GpuReading:
        if self.broken:
            raise SourceUnavailableError("the driver is gone")
        self._reads += 1
        samples = tuple(self._sample(index) for index in range(1 if self.lost else 2))
        errors = {"GPU-1": "fell off the bus"} if self.lost else {}
        return GpuReading(samples, errors, {("GPU-0", 79): self._reads // 3}, {"GPU-1": 1})

    def _sample(self, index: int) -> GpuSample:
        n = self._reads
        identity = GpuIdentity(
            index, f"GPU-{index}", "H200", f"00000000:{index}B:00.0", minor=index
        )
        return GpuSample(
            identity,
            self._clock(),
            memory_bytes={"total": 100.0, "used": 40.0 + n, "free": 60.0 - n},
            utilization_ratio={"gpu": 0.1 * n},
            activity_ratio={"sm": 1 / 3, "tensor": 0.25},
            energy_joules_total=1e6 + 250 * n,
            throttle_reasons=frozenset({"power", "thermal"} if n % 2 else set()),
            ecc_errors_total={("corrected", "volatile"): float(n)},
            pcie=PcieSample(bytes_total={"tx": 1e9 * n, "rx": 0.0}, generation=5, width=16),
            links=(LinkSample(0, True, 5e10, {"tx": 1e8 * n}),),
            processes=(GpuProcess(4000 + index, 3e9),),
            family_read_at_s={"health": self._clock() - 0.5},
            dcgm_fields={150: 60.0 + n, 1: "580.1"},
        )

    def close(self) -> None:
        pass


class Owners(OwnerSource):
    def __init__(self, clock: Clock) -> None:
        self._n = 0

    def read(self) -> GpuOwners:
        self._n += 1
        error = "no answer" if self._n == 3 else None
        pod = {"GPU-0": (Owner("pod-a", "ns", "vllm"),)}
        return GpuOwners((Reading("kubelet", error=error),), pod, {1: ("77", "78")})


class Host:
    """An exporter of a host on which something happens at each refresh."""

    def __init__(self, records: Any, folder: Path) -> None:
        self.clock = Clock()
        self._records = records
        self.gpus = Gpus(self.clock)
        self._far = Target("far", "http://192.0.2.1/metrics")
        self._follower = Follower((self._far,), 1.0)
        self.host_records = HostRecords(records.folder, self.clock)
        topology = Topology(
            (GpuPlace(0, "GPU-0", numa_node=0), GpuPlace(1, "GPU-1", numa_node=1)), {(0, 1): 18}
        )
        hardware = Hardware(
            self.gpus,
            Owners(self.clock),
            FabricSource(folder / "no-fabric", self.clock),
            lambda: topology,
            "host-1",
            lambda _: HostPlace("r12", "ib-7"),
            self.clock,
        )
        compat = DcgmCompat(default_counters(), "host-1")
        native = NativeEngines(self._follower)
        self.exporter = Exporter(self.host_records.read, hardware, native, compat, clock=self.clock)

    def happen(self, number: int) -> None:
        """Let the next thing happen: 0 is a host without engines' folder."""
        self.clock.now_s += 1.0
        if number == 1:
            self._records.engine()
            self._records.worker()
        if number == 2:
            self._follower.got[self._far] = Got((NativeSample("big", 0, 3.0, 1.0, 0.5),), 1002.0)
            self._records.engine(header={"engine": "b"}, running=7, pool0_live=11.25)
            self._records.folder.joinpath("bad.vramscope").write_bytes(b"\0" * 900)
        if number == 3:
            self._follower.got[self._far] = Got((), 1003.0, "answered 503")
            self.gpus.lost = True
        if number == 4:
            self.gpus.broken = True
        if number == 5:
            self.gpus.broken = self.gpus.lost = False
            self._records.folder.joinpath("bad.vramscope").unlink()


HAPPENINGS = 7


@pytest.fixture
def host(records: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setattr("vramscope.exporters.exporter.version", lambda _: "1.2.3")
    made = Host(records, tmp_path)
    yield made
    made.host_records.close()


Recorded = tuple[Path, list[dict[Form, bytes]]]


@pytest.fixture
def recorded(host: Host, tmp_path: Path) -> Recorded:
    """A recording of all that happens there, and the page of each refresh as it was live."""
    file = tmp_path / "some.rec"
    writer = RecordingWriter(file, STARTED)
    pages = []
    for number in range(HAPPENINGS):
        host.happen(number)
        writer.write(host.exporter.refresh())
        pages.append({form: host.exporter.page.page(form) for form in FORMS})
    writer.close()
    return file, pages


@pytest.fixture
def damage(recorded: Recorded) -> Callable[[Callable[[bytes], bytes]], Path]:
    """Changes the recording's bytes; returns its path."""

    def change(how: Callable[[bytes], bytes]) -> Path:
        file, _ = recorded
        file.write_bytes(how(file.read_bytes()))
        return file

    return change
