"""The page for the main cases, from the synthetic library to the text."""

from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from vramscope.exporters.catalog.gpu import GPU_METRICS
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.exposition.gpus import add_gpus, nobody
from vramscope.exporters.gpu.follower import GpuFollower
from vramscope.exporters.gpu.nvml import NvmlSource
from vramscope.exporters.gpu.owner import Owner
from vramscope.exporters.signals.gpu import GpuIdentity

Golden = Callable[[str, str], None]
Owners = Callable[[GpuIdentity], Owner]


def page(source: NvmlSource, nvml: Any, follower: GpuFollower, owners: Owners = nobody) -> str:
    reading = follower.follow(source.read(), source.name)
    families = Families()
    add_gpus(families, reading, "node1", owners, nvml.clock())
    registry = CollectorRegistry(auto_describe=False)
    registry.register(families)
    return generate_latest(registry).decode()


def page_after_a_second(nvml: Any, owners: Owners = nobody, **options: Any) -> str:
    source, follower = NvmlSource(clock=nvml.clock, **options), GpuFollower()
    page(source, nvml, follower)
    nvml.tick(1)
    return page(source, nvml, follower, owners)


def values(text: str, name: str, *labels: str) -> dict[tuple[str, ...], float]:
    """Return the samples of a metric by the values of ``labels``."""
    return {
        tuple(sample.labels[label] for label in labels): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    }


def test_two_gpus_with_a_switch(nvml: Any, golden: Golden) -> None:
    nvml.set(gpus=2, link_down=5)
    pods = {0: Owner(pod="vllm-0", namespace="llm", container="vllm")}
    golden("gpu_hopper.prom", page_after_a_second(nvml, lambda gpu: pods.get(gpu.index, Owner())))


def test_mig(nvml: Any, golden: Golden) -> None:
    nvml.set(gpus=1, mig=0, nvlinks=0)
    golden("gpu_mig.prom", page_after_a_second(nvml))


def test_no_nvlink_no_gpm(nvml: Any, golden: Golden) -> None:
    nvml.set(gpus=1, nvlinks=0, gpm=0, pcie_generation_now=4)
    golden("gpu_pcie_only.prom", page_after_a_second(nvml))


def test_nvlink_5_link_by_link(nvml: Any, golden: Golden) -> None:
    nvml.set(gpus=1, nvlinks=2, nvlink5=1, dram=10, tensor=10)
    golden("gpu_nvlink5.prom", page_after_a_second(nvml, per_link=True))


def test_lost_gpu(nvml: Any, golden: Golden) -> None:
    nvml.set(gpus=2, nvlinks=0)
    source, follower = NvmlSource(clock=nvml.clock), GpuFollower()
    page(source, nvml, follower)
    nvml.tick(1)
    nvml.set(lost=1, xids="1:79")
    text = page(source, nvml, follower)
    xids = values(text, "vramscope_gpu_xid_events_total", "gpu", "xid", "class")
    assert xids["1", "79", "restart_node"] == 1
    golden("gpu_lost.prom", text)


def test_no_permission_shows_the_rest(nvml: Any) -> None:
    nvml.set(gpus=1, denied=1)
    text = page_after_a_second(nvml)
    assert "vramscope_gpu_ecc_errors_total" not in text
    assert "vramscope_gpu_process_memory_bytes" not in text
    assert values(text, "vramscope_gpu_power_watts", "gpu") == {("0",): 412.5}


def test_counter_that_wraps_keeps_rising(nvml: Any) -> None:
    start = 2**64 - 2**31
    nvml.set(gpus=1, gpm=0, clock_s=0, count_from=start)
    source, follower = NvmlSource(clock=nvml.clock), GpuFollower()
    name = "vramscope_gpu_pcie_bytes_total"
    before = values(page(source, nvml, follower), name, "direction")
    nvml.tick(2)
    after = page(source, nvml, follower)
    moved = {key: value - before[key] for key, value in values(after, name, "direction").items()}
    near = 4096  # what a float keeps of 2^64
    assert moved == {
        ("tx",): pytest.approx(3e9, abs=near),
        ("rx",): pytest.approx(5e9, abs=near),
    }
    rates = values(after, "vramscope_gpu_pcie_bytes_per_second", "direction")
    assert rates == {
        ("tx",): pytest.approx(1.5e9, abs=near),
        ("rx",): pytest.approx(2.5e9, abs=near),
    }


def test_link_utilization_is_rate_over_capacity(nvml: Any) -> None:
    nvml.set(gpus=1)
    text = page_after_a_second(nvml)
    pcie = 16 * 32e9 * 128 / 130 / 8
    used = values(text, "vramscope_gpu_link_utilization_ratio", "link", "direction")
    assert used == pytest.approx(
        {
            ("pcie", "tx"): 1430.5 * 2**20 / pcie,
            ("pcie", "rx"): 2384 * 2**20 / pcie,
            ("nvlink", "tx"): 85831 * 2**20 / (18 * 26562e6),
            ("nvlink", "rx"): 86784 * 2**20 / (18 * 26562e6),
        }
    )
    bound = values(text, "vramscope_gpu_bound", "by")
    assert [by for (by,), on in bound.items() if on] == ["dram"]


def test_every_name_and_label_is_in_the_catalog(nvml: Any) -> None:
    nvml.set(gpus=3, mig=1, lost=2, link_down=1)
    catalog = {metric.name.removesuffix("_total"): metric for metric in GPU_METRICS}
    seen = set()
    for family in text_string_to_metric_families(page_after_a_second(nvml, per_link=True)):
        metric = catalog[family.name]
        seen.add(family.name)
        assert family.type == metric.kind
        for sample in family.samples:
            assert set(sample.labels) <= set(metric.labels)
            assert all(sample.labels.values()), "an empty label is left out"
    assert {"vramscope_gpu_memory_bytes", "vramscope_gpu_nvlink_link_bytes"} <= seen
