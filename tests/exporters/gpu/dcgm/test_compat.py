"""dcgm-exporter's page, from a synthetic DCGM and from a sample as NVML gives it."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text

from vramscope.exporters.exposition.render import openmetrics_page, text_page
from vramscope.exporters.gpu.compat import (
    CORRECTIONS,
    DcgmCompat,
    default_counters,
    exposed_kind,
    field_value,
)
from vramscope.exporters.gpu.compat_csv import Counters, parse_counters
from vramscope.exporters.gpu.dcgm import DcgmSource
from vramscope.exporters.gpu.dcgm_names import FIELD_IDS
from vramscope.exporters.gpu.owner import Owner
from vramscope.exporters.signals.gpu import GpuIdentity, GpuReading, GpuSample, PcieSample

Open = Callable[..., DcgmSource]
Golden = Callable[[str, str], None]
MIB = 1 << 20
DOC = Path(__file__).parents[4] / "docs" / "dcgm-compat.md"
NOT_FROM_NVML = {"DCGM_FI_DEV_VGPU_LICENSE_STATUS", "DCGM_FI_DEV_XID_ERRORS"}


def page(reading: GpuReading, counters: Counters | None = None, **kwargs: Any) -> str:
    compat = DcgmCompat(counters or default_counters(), "node7")
    return text_page(compat.texts(reading, **kwargs)).decode()


def samples(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    return {
        family.name: [(sample.labels, sample.value) for sample in family.samples]
        for family in parse_text(text)
    }


def read_all(dcgm: Any, source: Open) -> GpuReading:
    """Read what ``--compat dcgm`` needs; the first zero of an NVLink rate is behind it."""
    opened = source(dcgm, extra_fields=default_counters().field_ids)
    opened.read()
    return opened.read()


NVML_SAMPLE = GpuSample(
    GpuIdentity(3, "GPU-x", "NVIDIA H100 PCIe", "00000000:1B:00.0", "570.86.15", minor=5),
    read_at_s=1.0,
    memory_bytes={"free": 20000 * MIB, "used": 61000 * MIB, "reserved": 559 * MIB},
    utilization_ratio={"gpu": 0.97, "memory_copy": 0.54, "encoder": 0.0, "decoder": 0.12},
    activity_ratio={"graphics": 0.98, "tensor": 0.42, "dram": 0.71},
    clock_hz={"sm": 1.98e9, "memory": 2.619e9},
    temperature_celsius={"gpu": 55, "memory": 61},
    power_watts=412.5,
    energy_joules_total=987_654.321,
    remapped_rows_total={"correctable": 2, "uncorrectable": 0},
    row_remap_failed=False,
    pcie=PcieSample(bytes_per_second={"tx": 1.5e9, "rx": 2.5e9}, replays_total=3),
    nvlink_bytes_per_second={"tx": 9.216e10, "rx": 9.216e10},
)


def test_page_from_dcgm(synthetic: Any, source: Open, golden: Golden) -> None:
    dcgm = synthetic.SyntheticDcgm(gpus=2)
    dcgm.instances = {0: (1, 3, "MIG 1g.10gb")}
    dcgm.statuses |= {(synthetic.GPU_INSTANCE, 0, 150): -6}
    golden("dcgm_compat_dcgm.txt", page(read_all(dcgm, source)))


def test_page_from_nvml(golden: Golden) -> None:
    owner = Owner(pod="llm-0", namespace="serving", container="vllm")
    reading = GpuReading((NVML_SAMPLE,))
    golden("dcgm_compat_nvml.txt", page(reading, owner_of=lambda gpu: owner))


@pytest.mark.parametrize("version", ["3.3.9", "4.5.3", "4.6.0", "4.7.0"])
def test_page_is_the_same_whatever_the_version_of_dcgm(
    version: str, synthetic: Any, source: Open
) -> None:
    pages = {page(read_all(synthetic.SyntheticDcgm(version=v), source)) for v in ("4.5.3", version)}
    assert len(pages) == 1


def test_nvml_gives_what_dcgm_gives_but_for_what_the_docs_say(synthetic: Any, source: Open) -> None:
    from_dcgm = samples(page(read_all(synthetic.SyntheticDcgm(), source)))
    from_nvml = samples(page(GpuReading((NVML_SAMPLE,))))
    assert from_dcgm.keys() - from_nvml.keys() == NOT_FROM_NVML
    for name, ((_, value),) in from_nvml.items():
        assert value == pytest.approx(from_dcgm[name][0][1]), name


def test_each_way_to_a_value_has_its_unit() -> None:
    assert field_value(NVML_SAMPLE, FIELD_IDS["DCGM_FI_DEV_FB_USED"]) == 61000
    assert field_value(NVML_SAMPLE, FIELD_IDS["DCGM_FI_DEV_FB_USED_BYTES"]) == 61000 * MIB
    assert field_value(NVML_SAMPLE, FIELD_IDS["DCGM_FI_DEV_GPU_UTIL"]) == pytest.approx(97)
    assert field_value(NVML_SAMPLE, FIELD_IDS["DCGM_FI_DEV_GPU_UTIL_RATIO"]) == pytest.approx(0.97)
    assert field_value(NVML_SAMPLE, FIELD_IDS["DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"]) == 180_000
    assert field_value(NVML_SAMPLE, FIELD_IDS["DCGM_FI_DEV_FB_TOTAL"]) is None
    assert field_value(NVML_SAMPLE, FIELD_IDS["DCGM_FI_DEV_FAN_SPEED"]) is None


@pytest.mark.parametrize("percent", range(101))
def test_whole_percents_stay_whole(percent: int) -> None:
    sample = GpuSample(GpuIdentity(0, "GPU-x"), 0.0, utilization_ratio={"gpu": percent / 100})
    assert field_value(sample, FIELD_IDS["DCGM_FI_DEV_GPU_UTIL"]) == percent


def test_extra_fields_of_a_file_are_read_from_dcgm(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm()
    counters = parse_counters(
        "DCGM_FI_DEV_NVLINK_BANDWIDTH_L0, counter, link 0\n"
        "DCGM_FI_DEV_SERIAL, label, serial number\n"
        "DCGM_FI_DEV_FB_USED_BYTES, gauge, used\n"
        "DCGM_FI_DEV_PCIE_MAX_LINK_GEN, histogram, generation\n",
        "x.csv",
    )
    found = page(source(dcgm, extra_fields=counters.field_ids).read(), counters)
    assert "# TYPE DCGM_FI_DEV_NVLINK_BANDWIDTH_L0 gauge\n" in found
    assert "# TYPE DCGM_FI_DEV_PCIE_MAX_LINK_GEN gauge\n" in found
    ((labels, value),) = samples(found)["DCGM_FI_DEV_FB_USED_BYTES"]
    assert value == 61000 * MIB
    assert labels["DCGM_FI_DEV_SERIAL"] == "1650123"


def test_gpu_split_by_mig_is_counted_once(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm(gpus=1)
    dcgm.instances = {0: (0, 3, "1g.10gb"), 1: (0, 4, "2g.20gb")}
    dcgm.statuses |= {(synthetic.GPU_INSTANCE, i, 150): -6 for i in (0, 1)}
    found = samples(page(read_all(dcgm, source)))
    assert [labels["GPU_I_ID"] for labels, _ in found["DCGM_FI_DEV_FB_USED"]] == ["3", "4"]
    assert ["GPU_I_ID" in labels for labels, _ in found["DCGM_FI_DEV_GPU_TEMP"]] == [False]
    assert {labels["UUID"] for labels, _ in found["DCGM_FI_DEV_FB_USED"]} == {
        "GPU-00000000-0000-0000-0000-000000000000"
    }


def test_quotes_and_backslashes_of_a_label_are_escaped() -> None:
    odd = GpuSample(GpuIdentity(0, "GPU-x", 'a"b\\c\nd'), 0.0, power_watts=1.0)
    ((labels, _),) = samples(page(GpuReading((odd,))))["DCGM_FI_DEV_POWER_USAGE"]
    assert labels["modelName"] == 'a"b\\c\nd'


def test_no_reading_is_no_family() -> None:
    assert page(GpuReading(())) == ""


def test_openmetrics_parses_and_has_the_same_samples() -> None:
    compat = DcgmCompat(default_counters(), "node7")
    texts = [*compat.texts(GpuReading((NVML_SAMPLE,)))]
    page = openmetrics_page(texts).decode()
    families = parse_openmetrics(page)  # type: ignore[no-untyped-call]  # it has no types
    values = {s.name: s.value for family in families for s in family.samples}
    assert values == {name: v for name, ((_, v),) in samples(text_page(texts).decode()).items()}


def test_promtool_finds_fault_with_dcgm_exporter_s_names_only(promtool: str) -> None:
    done = subprocess.run(
        [promtool, "check", "metrics"],
        input=page(GpuReading((NVML_SAMPLE,))),
        capture_output=True,
        text=True,
        check=False,
    )
    faults = done.stderr.splitlines()
    names = ('should have "_total" suffix', "camelCase", "not include type")
    assert faults
    assert [fault for fault in faults if not any(name in fault for name in names)] == []


def test_docs_name_each_corrected_default_and_each_that_nvml_lacks() -> None:
    text = DOC.read_text()
    corrected = [row.name for row in default_counters().rows if exposed_kind(row) != row.kind]
    assert corrected == ["DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"]
    for name in (*corrected, *NOT_FROM_NVML, *(row.name for row in default_counters().rows)):
        assert f"`{name}`" in text, name
    for why in set(CORRECTIONS.values()):
        assert why.split(":")[0] in text, why
