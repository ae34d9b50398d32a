"""The NVML source: the real nvidia-ml-py on the synthetic library."""

import doctest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vramscope.exporters.errors import SourceUnavailableError
from vramscope.exporters.gpu import nvml_mig
from vramscope.exporters.gpu.nvml import NvmlSource
from vramscope.exporters.gpu.source import GpuSource
from vramscope.exporters.gpu.xid import ANNOUNCED_XIDS
from vramscope.exporters.signals.gpu import GpuProcess, GpuSample

GPU0 = "GPU-00000000-0000-0000-0000-000000000000"
GPU1 = "GPU-00000001-0000-0000-0000-000000000000"


def opened(nvml: Any, **options: Any) -> NvmlSource:
    return NvmlSource(clock=nvml.clock, **options)


def first(source: GpuSource) -> GpuSample:
    return source.read().samples[0]


@pytest.mark.parametrize("gpus", [1, 2, 8, 16])
def test_every_gpu_is_read(nvml: Any, gpus: int) -> None:
    nvml.set(gpus=gpus)
    reading = opened(nvml).read()
    assert [sample.gpu.index for sample in reading.samples] == list(range(gpus))
    assert len({sample.gpu.uuid for sample in reading.samples}) == gpus
    assert not reading.errors


def test_quantities_come_in_base_units(nvml: Any) -> None:
    source = opened(nvml)
    nvml.tick(1)  # it is second 11: the synthetic counters are rates times seconds
    sample = first(source)
    assert sample.gpu.uuid == GPU0
    assert sample.gpu.name == "NVIDIA H100 80GB HBM3"
    assert sample.gpu.pci_bus_id == "00000000:1B:00.0"
    assert sample.gpu.driver_version == "570.00"
    assert sample.gpu.minor == 0
    assert sample.memory_bytes == {
        "total": 85520809984,
        "used": 69448449024,
        "free": 15520809984,
        "reserved": 551550976,
    }
    assert sample.utilization_ratio == {
        "gpu": 0.97,
        "memory_copy": 0.54,
        "encoder": 0,
        "decoder": 0,
    }
    assert sample.clock_hz == {"sm": 1.98e9, "memory": 2.619e9}
    assert sample.temperature_celsius == {"gpu": 55, "memory": 61}
    assert sample.power_watts == 412.5
    assert sample.energy_joules_total == 412.5 * 11
    assert sample.throttle_reasons == frozenset({"software_power_cap"})
    assert sample.throttle_seconds_total == {"software_power_cap": 1.1, "thermal": 0}
    assert sample.ecc_errors_total == {
        ("corrected", "volatile"): 7,
        ("uncorrected", "volatile"): 0,
        ("corrected", "aggregate"): 21,
        ("uncorrected", "aggregate"): 1,
    }
    assert sample.remapped_rows_total == {"correctable": 1, "uncorrectable": 0}
    assert sample.row_remap_failed is False
    assert sample.row_remap_pending is False
    assert sample.pcie.bytes_total == {"tx": 11 * 1.5e9, "rx": 11 * 2.5e9}
    assert (sample.pcie.generation, sample.pcie.max_generation) == (5, 5)
    assert (sample.pcie.width, sample.pcie.max_width) == (16, 16)
    assert sample.pcie.replays_total == 3
    assert sample.nvlink_bytes_total == {
        "tx": 18 * 11 * 5e6 * 1024,
        "rx": 18 * 11 * 6e6 * 1024,
    }
    assert sample.processes == (GpuProcess(4000, 69448449024),)


def test_links_have_state_speed_peer_and_the_sum_of_their_errors(nvml: Any) -> None:
    nvml.set(link_down=5)
    sample = first(opened(nvml))
    assert len(sample.links) == 18
    assert [link.link for link in sample.links if not link.active] == [5]
    assert {link.bytes_per_second_capacity for link in sample.links} == {26562e6}
    assert {link.peer for link in sample.links} == {"switch"}
    assert sample.nvlink_errors_total == {"replay": 2, "recovery": 0, "crc_flit": 0, "crc_data": 0}
    assert not sample.links[3].errors_total


def test_single_links_are_read_where_asked(nvml: Any) -> None:
    links = first(opened(nvml, per_link=True)).links
    assert links[0].bytes_total == {"tx": 10 * 5e6 * 1024, "rx": 10 * 6e6 * 1024}
    assert links[3].errors_total["replay"] == 2


def test_links_between_gpus_name_their_peers(nvml: Any) -> None:
    nvml.set(gpus=2, nvlink_switch=0, nvlinks=4)
    assert {link.peer for link in first(opened(nvml)).links} == {"00000000:1C:00.0"}


def test_nvlink_5_bytes_are_summed_from_its_links(nvml: Any) -> None:
    nvml.set(nvlink5=1)
    sample = first(opened(nvml))
    assert sample.nvlink_bytes_total == {"tx": 18 * 10 * 40e9, "rx": 18 * 10 * 30e9}
    assert sample.links[0].bytes_per_second_capacity == 53125e6
    assert sample.nvlink_errors_total == {"receive": 18, "recovery": 18, "symbol": 18}


def test_gpu_without_nvlink_has_nothing_of_it(nvml: Any) -> None:
    nvml.set(nvlinks=0)
    source = opened(nvml)
    nvml.tick(1)
    source.read()
    nvml.tick(1)
    sample = first(source)
    assert sample.links == ()
    assert not sample.nvlink_bytes_total
    assert not sample.nvlink_bytes_per_second
    assert "links" not in sample.family_read_at_s


def test_gpm_measures_from_one_read_to_the_next(nvml: Any) -> None:
    source = opened(nvml)
    assert not first(source).activity_ratio, "one sample measures nothing"
    nvml.tick(0.05)
    assert not first(source).activity_ratio, "samples under 100 ms apart measure nothing"
    nvml.tick(0.06)
    sample = first(source)
    assert sample.activity_ratio == pytest.approx(
        {"graphics": 0.98, "sm": 0.91, "sm_occupancy": 0.33, "tensor": 0.42, "dram": 0.71}
    )
    mib = 1024 * 1024
    assert sample.pcie.bytes_per_second == {"tx": 1430.5 * mib, "rx": 2384 * mib}
    assert sample.nvlink_bytes_per_second == {"tx": 85831 * mib, "rx": 86784 * mib}
    assert not sample.c2c_bytes_per_second, "NaN is a blank"
    nvml.set(sm=10)
    nvml.tick(0.01)
    assert first(source).activity_ratio["sm"] == 0.91, "the last measure stands for 100 ms"
    nvml.tick(0.1)
    assert first(source).activity_ratio["sm"] == pytest.approx(0.1)


def test_slow_pcie_call_is_left_alone_while_fields_or_gpm_answer(nvml: Any) -> None:
    for gpm, fields in ((1, 1), (0, 1), (1, 0)):
        nvml.set(gpm=gpm, pcie_fields=fields)
        source = opened(nvml)
        for _ in range(3):
            nvml.tick(20)
            source.read()
        source.close()
    assert nvml.library.synthetic_slow_calls() == 0


@pytest.mark.parametrize("fields", [0, 32])
def test_slow_pcie_call_is_made_every_10_s_at_most_and_for_one_gpu_a_read(
    nvml: Any, fields: int
) -> None:
    nvml.set(gpus=2, gpm=0, pcie_fields=fields)
    source = opened(nvml)
    slow = nvml.library.synthetic_slow_calls
    source.read()
    assert slow() == 2, "both directions of one GPU"
    source.read()
    assert slow() == 4
    for _ in range(8):
        nvml.tick(1)
        samples = source.read().samples
    assert slow() == 4
    assert samples[0].pcie.bytes_per_second == {"tx": 1464843000, "rx": 2441406000}
    assert not samples[0].pcie.bytes_total
    assert nvml.clock() - samples[0].family_read_at_s["pcie"] == 8
    nvml.tick(3)
    source.read()
    source.read()
    assert slow() == 8


def test_health_and_link_states_are_read_every_10_s_and_say_how_old_they_are(nvml: Any) -> None:
    source = opened(nvml)
    assert first(source).links[5].active
    nvml.set(link_down=5)
    nvml.tick(9)
    sample = first(source)
    assert sample.links[5].active
    assert sample.read_at_s - sample.family_read_at_s["links"] == 9
    assert sample.read_at_s - sample.family_read_at_s["health"] == 9
    nvml.tick(1)
    assert first(source).links[5].active is False


def test_mig_instances_follow_their_gpu(nvml: Any) -> None:
    nvml.set(gpus=2, mig=1)
    source = opened(nvml)
    source.read()
    nvml.tick(1)
    samples = source.read().samples
    whole, one, two = samples[1:]
    assert whole.gpu.mig_profile == ""
    assert [one.gpu.mig_instance, two.gpu.mig_instance] == ["1", "2"]
    assert one.gpu.mig_profile == "1g.10gb"
    assert one.gpu.index == 1
    assert one.gpu.parent_uuid == whole.gpu.uuid
    assert one.gpu.uuid.startswith("MIG-")
    assert one.memory_bytes["total"] == 10468982784
    assert one.activity_ratio["sm"] == pytest.approx(0.91)
    assert one.processes[0].pid == 4011
    nvml.set(mig=-1)
    assert [sample.gpu.index for sample in source.read().samples] == [0, 1], "layout changed"


def test_lost_gpu_hides_no_other_and_comes_back(nvml: Any) -> None:
    source = opened(nvml)
    source.read()
    nvml.set(lost=1)
    reading = source.read()
    assert [sample.gpu.index for sample in reading.samples] == [0, 2, 3, 4, 5, 6, 7]
    assert reading.errors == {GPU1: "GPU is lost"}
    assert reading.indexes[GPU1] == 1
    assert source.read().errors, "it stays lost"
    nvml.set(lost=-1)
    reading = source.read()
    assert len(reading.samples) == 8
    assert not reading.errors


def test_gpu_that_fails_for_unknown_reasons_hides_no_other(nvml: Any) -> None:
    source = opened(nvml)
    source.read()
    nvml.set(unknown=1)
    reading = source.read()
    assert len(reading.samples) == 7
    assert reading.errors == {GPU1: "nvmlDeviceGetMemoryInfo: Unknown Error"}
    nvml.set(unknown=-1)
    assert not source.read().errors


def test_gpu_lost_from_the_start_is_named_by_its_index(nvml: Any) -> None:
    nvml.set(gpus=2, lost=0)
    reading = opened(nvml).read()
    assert [sample.gpu.index for sample in reading.samples] == [1]
    assert list(reading.errors) == ["0"]
    assert "GPU is lost" in reading.errors["0"]


def test_device_list_that_changes_is_read_anew(nvml: Any) -> None:
    source = opened(nvml)
    source.read()
    nvml.set(gpus=2)
    assert len(source.read().samples) == 2
    nvml.set(gpus=4)
    assert len(source.read().samples) == 4


def test_what_the_user_may_not_read_is_absent_and_tried_again_after_5_minutes(nvml: Any) -> None:
    nvml.set(denied=1)
    source = opened(nvml)
    sample = first(source)
    assert not sample.ecc_errors_total
    assert not sample.processes
    assert sample.remapped_rows_total, "what is not denied is there"
    nvml.set(denied=0)
    nvml.tick(299)
    assert not first(source).processes
    nvml.tick(11)
    sample = first(source)
    assert sample.processes
    assert sample.ecc_errors_total


def test_refused_call_is_not_made_at_each_refresh(
    nvml: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml.set(denied=1)
    source = opened(nvml)
    source.read()
    called = []

    def processes(handle: Any) -> list[Any]:
        called.append(handle)
        return []

    monkeypatch.setattr("pynvml.nvmlDeviceGetComputeRunningProcesses_v3", processes)
    source.read()
    assert not called
    nvml.tick(301)
    source.read()
    assert len(called) == 8


def test_driver_that_goes_is_said_and_opened_again_when_it_is_back(nvml: Any) -> None:
    source = opened(nvml)
    source.read()
    nvml.set(unloaded=1)
    for _ in range(2):
        with pytest.raises(SourceUnavailableError, match=r"^nvml: "):
            source.read()
    nvml.set(unloaded=0)
    assert len(source.read().samples) == 8


def test_driver_that_was_reloaded_is_opened_again(nvml: Any) -> None:
    source = opened(nvml)
    source.read()
    nvml.set(reloads=1)
    with pytest.raises(SourceUnavailableError, match="opens it again"):
        source.read()
    assert len(source.read().samples) == 8


def test_unloaded_driver_says_what_to_do(nvml: Any) -> None:
    nvml.set(unloaded=1)
    with pytest.raises(SourceUnavailableError, match="modprobe nvidia"):
        opened(nvml)


def test_host_without_gpu_is_no_source(nvml: Any) -> None:
    nvml.set(gpus=0)
    with pytest.raises(SourceUnavailableError, match="sees no GPU"):
        opened(nvml)


def test_xids_are_counted_one_by_one_from_0(nvml: Any) -> None:
    source = opened(nvml)
    xids = source.read().xids
    assert {xid for uuid, xid in xids if uuid == GPU0} == set(ANNOUNCED_XIDS)
    assert set(xids.values()) == {0}
    nvml.set(xids="0:13,0:13,1:154")
    xids = source.read().xids
    assert xids[GPU0, 13] == 2
    assert xids[GPU1, 154] == 1
    nvml.set(xids="0:13,0:13,1:154,0:13")
    assert source.read().xids[GPU0, 13] == 3
    assert source.read().xids[GPU0, 13] == 3, "an event counts once"


def test_xid_that_takes_its_gpu_away_is_counted(nvml: Any) -> None:
    source = opened(nvml)
    source.read()
    nvml.set(xids="1:79", lost=1)
    reading = source.read()
    assert GPU1 in reading.errors
    assert reading.xids[GPU1, 79] == 1


def test_xid_counts_survive_a_driver_reload(nvml: Any) -> None:
    source = opened(nvml)
    source.read()
    nvml.set(xids="0:31")
    assert source.read().xids[GPU0, 31] == 1
    nvml.set(reloads=1)
    with pytest.raises(SourceUnavailableError):
        source.read()
    assert source.read().xids[GPU0, 31] == 1
    nvml.set(xids="0:31,0:31")
    assert source.read().xids[GPU0, 31] == 2


def test_old_driver_lacks_symbols_and_the_rest_is_read(
    build_nvml: Callable[..., Path], load_nvml: Callable[[Path], Any]
) -> None:
    folder = build_nvml("MEMORY_V2", "GPM", "EVENTS", soname="libsynthetic-nvml.so")
    nvml = load_nvml(folder)
    source = opened(nvml)
    nvml.tick(1)
    source.read()
    nvml.tick(1)
    reading = source.read()
    sample = reading.samples[0]
    assert sample.memory_bytes == {"total": 85520809984, "used": 70000000000, "free": 15520809984}
    assert not sample.activity_ratio
    assert not reading.xids, "no event set: absent is not zero"
    assert sample.pcie.bytes_total
    assert sample.power_watts == 412.5


def test_mig_profile_examples_hold() -> None:
    result = doctest.testmod(nvml_mig)
    assert result.attempted > 0
    assert not result.failed


def test_closed_source_opens_again(nvml: Any) -> None:
    source = opened(nvml)
    source.read()
    source.close()
    source.close()
    assert len(source.read().samples) == 8
