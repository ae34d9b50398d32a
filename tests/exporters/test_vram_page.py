"""The VRAM budget on the page: an engine's record joined with its GPU, which is synthetic."""

from dataclasses import replace
from typing import Any

from vramscope.exporters.engine.host import HostRecords
from vramscope.exporters.exposition.engines import add_engine
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.exposition.vram import add_vram_of_devices
from vramscope.exporters.signals.gpu import GpuIdentity, GpuProcess, GpuSample

GPU = GpuSample(
    GpuIdentity(0, "GPU-a"),
    read_at_s=0.0,
    memory_bytes={"total": 10_000_000, "free": 1_000_000, "used": 9_000_000},
    processes=(GpuProcess(7, 8_000_000), GpuProcess(8, 500_000)),
)


def parts(families: Families) -> dict[str, float]:
    (family,) = [family for family in families if family.metric.name == "vramscope_vram_bytes"]
    assert {labels[:4] for labels in family.labels} == {("a", "tiny", "0", "0")}
    names = [labels[-1] for labels in family.labels]
    return dict(zip(names, family.values, strict=True))


def test_parts_of_engine_and_gpu_join_by_uuid_and_sum_to_the_device(records: Any) -> None:
    records.engine()
    records.worker()
    (reading,) = [r for r in HostRecords(records.folder).read() if r.sample]
    assert reading.sample is not None
    (vram,) = reading.sample.vram
    sample = replace(reading.sample, vram=(replace(vram, gpu_uuid="GPU-a", pid=7),))
    families = Families()
    add_engine(families, sample)
    add_vram_of_devices(families, [sample], [GPU])
    found = parts(families)
    assert found["weights"] == 1_500_000
    assert found["other_processes"] == 500_000
    assert sum(found.values()) == 10_000_000


def test_engine_on_a_cpu_has_its_own_parts_only(records: Any) -> None:
    records.engine()
    records.worker()
    (reading,) = [r for r in HostRecords(records.folder).read() if r.sample]
    families = Families()
    add_engine(families, reading.sample)  # type: ignore[arg-type]
    add_vram_of_devices(families, [reading.sample], [GPU])  # type: ignore[list-item]
    assert set(parts(families)) == {"weights", "kv_pool", "lora_slots"}
