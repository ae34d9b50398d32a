"""What a DCGM source reads, from a synthetic DCGM of each version."""

from collections.abc import Callable
from typing import Any

import pytest

from vramscope.exporters.errors import SourceUnavailableError
from vramscope.exporters.gpu.dcgm import DcgmSource
from vramscope.exporters.signals.gpu import GpuReading, GpuSample

Open = Callable[..., DcgmSource]
MIB = 1 << 20


def only(reading: GpuReading) -> GpuSample:
    assert not reading.errors
    (sample,) = reading.samples
    return sample


@pytest.mark.parametrize("version", ["3.3.9", "4.5.3", "4.6.0", "4.7.0"])
def test_quantities_are_in_base_units_whatever_the_version(
    version: str, synthetic: Any, source: Open
) -> None:
    sample = only(source(synthetic.SyntheticDcgm(version=version)).read())
    assert sample.gpu.uuid == "GPU-00000000-0000-0000-0000-000000000000"
    assert sample.gpu.name == "NVIDIA H100 80GB HBM3"
    assert sample.gpu.pci_bus_id == "00000000:1B:00.0"
    assert sample.gpu.driver_version == "570.86.15"
    assert sample.gpu.minor == 0
    assert sample.read_at_s == 5.0
    assert sample.memory_bytes == {
        "total": 81559 * MIB,
        "free": 20000 * MIB,
        "used": 61000 * MIB,
        "reserved": 559 * MIB,
    }
    assert sample.utilization_ratio == {
        "gpu": 0.97,
        "memory_copy": 0.54,
        "encoder": 0.0,
        "decoder": 0.12,
    }
    assert sample.activity_ratio == {
        "graphics": 0.98,
        "sm": 0.91,
        "sm_occupancy": 0.33,
        "tensor": 0.42,
        "dram": 0.71,
    }
    assert sample.clock_hz == {"sm": 1.98e9, "memory": 2.619e9}
    assert sample.temperature_celsius == {"gpu": 55, "memory": 61}
    assert sample.power_watts == 412.5
    assert sample.energy_joules_total == 987_654.321
    assert sample.throttle_reasons == frozenset({"software_power_cap"})
    assert sample.throttle_seconds_total["software_power_cap"] == 2.5
    assert sample.ecc_errors_total == {
        ("corrected", "volatile"): 7,
        ("uncorrected", "volatile"): 0,
        ("corrected", "aggregate"): 9,
        ("uncorrected", "aggregate"): 1,
    }
    assert sample.remapped_rows_total == {"uncorrectable": 0, "correctable": 2}
    assert sample.row_remap_failed is False
    assert sample.row_remap_pending is False
    assert sample.nvlink_bytes_per_second == {"tx": 9.0e10, "rx": 9.1e10}
    assert sample.nvlink_errors_total == {"crc_flit": 1, "crc_data": 2, "replay": 3, "recovery": 0}
    pcie = sample.pcie
    assert pcie.bytes_per_second == {"tx": 1.5e9, "rx": 2.5e9}
    assert (pcie.generation, pcie.max_generation, pcie.width, pcie.max_width) == (4, 5, 16, 16)
    assert pcie.replays_total == 3


def test_cumulative_bytes_are_counters_where_dcgm_has_them(synthetic: Any, source: Open) -> None:
    old = only(source(synthetic.SyntheticDcgm(version="3.3.9")).read())
    new = only(source(synthetic.SyntheticDcgm(version="4.6.0")).read())
    assert (old.pcie.bytes_total, old.nvlink_bytes_total) == ({}, {})
    assert new.pcie.bytes_total == {"tx": 10**15, "rx": 2 * 10**15}
    assert new.nvlink_bytes_total == {"tx": 7 * 10**15, "rx": 8 * 10**15}
    assert new.c2c_bytes_per_second == {"tx": 4000, "rx": 5000}
    assert new.throttle_seconds_total["software_power_cap"] == 2.5
    assert new.throttle_seconds_total["hardware_thermal"] == 0.25


def test_nvlink_totals_are_rates_in_thousands_of_kib_and_never_counters(
    synthetic: Any, source: Open
) -> None:
    dcgm = synthetic.SyntheticDcgm()
    dcgm.known -= {1011, 1012, 1201, 1203}
    sample = only(source(dcgm, extra_fields=[449]).read())
    assert sample.nvlink_bytes_total == {}
    assert sample.nvlink_bytes_per_second == {"tx": 90_000 * 1.024e6, "rx": 91_000 * 1.024e6}
    assert sample.dcgm_fields[449] == 180_000


def test_first_zero_of_an_nvlink_rate_is_no_value(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm()
    dcgm.known -= {1011, 1012}
    dcgm.values[synthetic.GPU, 0, 843] = 0
    dcgm.values[synthetic.GPU, 0, 897] = 0
    opened = source(dcgm)
    assert only(opened.read()).nvlink_bytes_per_second == {}
    assert only(opened.read()).nvlink_bytes_per_second == {"tx": 0, "rx": 0}


def test_ids_of_4_7_stand_in_where_the_original_ids_are_gone(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm(version="4.7.0")
    dcgm.known -= {100, 101, 156, 203, 204, 206, 207, *range(240, 248), *range(250, 254), 449}
    sample = only(source(dcgm, extra_fields=[449]).read())
    assert sample.memory_bytes["used"] == 61000 * MIB
    assert sample.utilization_ratio["gpu"] == 0.97
    assert sample.clock_hz == {"sm": 1.98e9, "memory": 2.619e9}
    assert sample.energy_joules_total == 987_654
    assert sample.throttle_seconds_total["software_power_cap"] == 2.5
    in_original_units = {i: sample.dcgm_fields[i] for i in (100, 156, 203, 240, 252, 449)}
    assert in_original_units == {
        100: 1980,
        156: 987_654_000,
        203: 97,
        240: 2.5e9,
        252: 61000,
        449: 180_000,
    }


@pytest.mark.parametrize("more", [0, 1, 2, 3])
def test_no_kind_of_blank_is_ever_a_number(more: int, synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm()
    gpu = synthetic.GPU
    dcgm.values |= {
        (gpu, 0, 252): synthetic.INT64_BLANK + more,
        (gpu, 0, 140): 0x7FFFFFF0 + more,
        (gpu, 0, 155): synthetic.FP64_BLANK + more,
        (gpu, 0, 1004): float("nan"),
        (gpu, 0, 53): ["<<<NULL>>>", "<<<NOT_FOUND>>>", "<<<NOT_SUPPORTED>>>", "<<<NOT_PERM>>>"][
            more
        ],
        (gpu, 0, 204): "<<<LATER>>>",
    }
    dcgm.statuses |= {(gpu, 0, 101): [-6, -14, -16, -17][more]}
    sample = only(source(dcgm).read())
    assert "used" not in sample.memory_bytes
    assert "memory" not in sample.temperature_celsius
    assert sample.power_watts is None
    assert "tensor" not in sample.activity_ratio
    assert "memory" not in sample.clock_hz
    assert "memory_copy" not in sample.utilization_ratio
    assert sample.dcgm_fields.keys().isdisjoint({252, 140, 155, 1004, 53, 101, 204})


def test_counter_that_passes_the_32_bit_blanks_is_still_a_number(
    synthetic: Any, source: Open
) -> None:
    dcgm = synthetic.SyntheticDcgm()
    opened = source(dcgm)
    dcgm.values[synthetic.GPU, 0, 156] = 0x7FFFFFF4
    assert only(opened.read()).energy_joules_total == 0x7FFFFFF4 / 1000
    dcgm.values[synthetic.GPU, 0, 156] = 1 << 40
    assert only(opened.read()).energy_joules_total == (1 << 40) / 1000


def test_unknown_fields_are_left_out_one_by_one(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm()
    dcgm.known -= {101, 252, 313}
    sample = only(source(dcgm, extra_fields=[4242]).read())
    assert sample.clock_hz == {"sm": 1.98e9}
    assert sample.memory_bytes.keys() == {"total", "free", "reserved"}
    assert ("uncorrected", "aggregate") not in sample.ecc_errors_total
    assert sample.power_watts == 412.5


def test_profiling_is_asked_of_each_gpu(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm(gpus=3)
    dcgm.profiling = {0: synthetic.PROFILING_NOT_SUPPORTED, 1: (1001, 1002)}
    by_index = {s.gpu.index: s.activity_ratio for s in source(dcgm).read().samples}
    assert by_index[0] == {}
    assert by_index[1] == {"graphics": 0.98, "sm": 0.91}
    assert by_index[2].keys() == {"graphics", "sm", "sm_occupancy", "tensor", "dram"}


def test_profiling_without_permission_costs_only_profiling(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm()
    dcgm.unwatchable = dict.fromkeys(synthetic.BASIC_PROFILING, synthetic.NO_PERMISSION)
    sample = only(source(dcgm).read())
    assert sample.activity_ratio == {}
    assert sample.memory_bytes["used"] == 61000 * MIB


def test_profiling_is_never_read_below_100_ms(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm()
    source(dcgm, period_s=0.02)
    watched = dcgm.watched[synthetic.GPU, 0]
    assert watched[1004][0] == 100_000
    assert watched[252][0] == 20_000


def test_few_samples_are_kept_but_for_xids(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm()
    source(dcgm)
    watched = dcgm.watched[synthetic.GPU, 0]
    assert {samples for field, (_, samples) in watched.items() if field != 230} == {2}
    assert watched[230][1] >= 100


def test_mig_instances_are_samples_of_their_own(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm(gpus=2)
    dcgm.instances = {0: (1, 3, "MIG 1g.10gb"), 1: (1, 5, "MIG 2g.20gb")}
    dcgm.values[synthetic.GPU_INSTANCE, 1, 252] = 1000
    dcgm.values[synthetic.GPU_INSTANCE, 1, 54] = "MIG-11111111-2222-3333-4444-555555555555"
    reading = source(dcgm).read()
    first, second = (s for s in reading.samples if s.gpu.mig_instance)
    assert len(reading.samples) == 4
    assert (first.gpu.index, first.gpu.mig_instance, first.gpu.mig_profile) == (1, "3", "1g.10gb")
    assert first.gpu.uuid == "MIG-GPU-00000001-0000-0000-0000-000000000000/3/0"
    assert first.gpu.parent_uuid == "GPU-00000001-0000-0000-0000-000000000000"
    assert second.gpu.uuid == "MIG-11111111-2222-3333-4444-555555555555"
    assert second.memory_bytes["used"] == 1000 * MIB


def test_links_have_their_state_and_where_asked_their_traffic(synthetic: Any, source: Open) -> None:
    not_there, down, up = 0, 2, 3
    dcgm = synthetic.SyntheticDcgm(gpus=2)
    dcgm.link_states = {0: [up, down, not_there], 1: [not_there] * 3}
    plain, without = source(dcgm).read().samples
    assert [(link.link, link.active) for link in plain.links] == [(0, True), (1, False)]
    assert without.links == ()
    asked, _ = source(dcgm, per_link=True).read().samples
    assert [link.bytes_per_second for link in asked.links] == [
        {"tx": 5_000_001_040, "rx": 5_000_001_041},
        {"tx": 5_000_001_042, "rx": 5_000_001_043},
    ]


def test_link_entities_are_read_where_dcgm_has_them(synthetic: Any, source: Open) -> None:
    of_gpu = [synthetic.GPU | link << 8 | 1 << 24 for link in (0, 20)]
    of_switch = 3 | 7 << 8 | 1 << 24
    dcgm = synthetic.SyntheticDcgm(gpus=2)
    dcgm.profiling = dict.fromkeys((0, 1), synthetic.PROFILING_NOT_SUPPORTED)
    dcgm.links = [*of_gpu, of_switch]
    dcgm.link_states = {1: [3] * 21}
    dcgm.values[synthetic.LINK, of_gpu[1], 1532] = 77
    _, sample = source(dcgm, per_link=True).read().samples
    assert len(sample.links) == 21
    assert sample.links[20].bytes_per_second == {"tx": 77, "rx": 5_100_000_000}
    assert sample.links[20].errors_total == {
        "crc_flit": 1,
        "crc_data": 2,
        "replay": 3,
        "recovery": 4,
    }
    assert sample.links[19].bytes_per_second == {}


@pytest.mark.parametrize(
    ("address", "where"),
    [
        ("", {}),
        ("node7:5555", {"ipAddress": "node7:5555"}),
        ("unix:///run/nv-hostengine.sock", {"unixSocketPath": "/run/nv-hostengine.sock"}),
    ],
)
def test_address_says_embedded_host_or_socket(
    address: str, where: dict[str, str], synthetic: Any, source: Open
) -> None:
    dcgm = synthetic.SyntheticDcgm()
    opened = source(dcgm, address=address)
    assert dcgm.connections == [where]
    assert opened.version == (4, 6, 0)


def test_closing_leaves_nothing_in_the_host_engine(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm(gpus=2)
    dcgm.known -= {101}
    opened = source(dcgm)
    opened.read()
    assert dcgm.open_groups
    opened.close()
    assert not dcgm.open_groups


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-25, "DCGM library could not be found.*install"),
        (-21, r"host engine node7:5555.*not valid.*nv-hostengine"),
        (-17, "Not permissioned"),
    ],
)
def test_what_can_not_be_opened_says_why(
    code: int, words: str, synthetic: Any, source: Open
) -> None:
    dcgm = synthetic.SyntheticDcgm()
    dcgm.refuse = code
    with pytest.raises(SourceUnavailableError, match=words):
        source(dcgm, address="node7:5555")
