"""Readings that follow each other: totals, rates, and GPUs that come and go."""

import doctest

import pytest

from vramscope.exporters.gpu import throttle, xid
from vramscope.exporters.gpu.follower import GpuFollower
from vramscope.exporters.signals.gpu import (
    GpuIdentity,
    GpuReading,
    GpuSample,
    LinkSample,
    PcieSample,
)


def reading(at_s: float, pcie: float, *, uuid: str = "GPU-a", energy: float = 0.0) -> GpuReading:
    sample = GpuSample(
        GpuIdentity(3, uuid),
        read_at_s=at_s,
        energy_joules_total=energy,
        pcie=PcieSample(bytes_total={"tx": pcie}),
        nvlink_bytes_total={"rx": 10 * pcie},
        links=(LinkSample(0, bytes_total={"rx": pcie}),),
    )
    return GpuReading((sample,))


def test_rates_come_from_counters_where_the_source_has_none() -> None:
    follower = GpuFollower()
    (first,) = follower.follow(reading(0, 1_000), "nvml").samples
    assert not first.pcie.bytes_per_second
    (second,) = follower.follow(reading(2, 1_500), "nvml").samples
    assert second.pcie.bytes_per_second == {"tx": 250}
    assert second.nvlink_bytes_per_second == {"rx": 2_500}
    assert second.links[0].bytes_per_second == {"rx": 250}


def test_rate_that_the_gpu_measured_goes_before_ours() -> None:
    follower = GpuFollower()
    follower.follow(reading(0, 1_000), "nvml")
    sample = GpuSample(
        GpuIdentity(3, "GPU-a"),
        read_at_s=1,
        pcie=PcieSample(bytes_total={"tx": 1_500}, bytes_per_second={"tx": 777}),
    )
    (seen,) = follower.follow(GpuReading((sample,)), "nvml").samples
    assert seen.pcie.bytes_per_second == {"tx": 777}
    assert seen.pcie.bytes_total == {"tx": 1_500}


def test_change_of_source_is_no_rate_of_0() -> None:
    follower = GpuFollower()
    follower.follow(reading(0, 1_000), "nvml")
    follower.follow(reading(1, 1_500), "nvml")
    (seen,) = follower.follow(reading(2, 90_000), "dcgm").samples
    assert seen.pcie.bytes_total == {"tx": 1_500}
    assert not seen.pcie.bytes_per_second
    (seen,) = follower.follow(reading(3, 90_700), "dcgm").samples
    assert seen.pcie.bytes_per_second == {"tx": 700}


def test_energy_wraps_in_millijoules() -> None:
    follower = GpuFollower()
    top_j = 2**32 / 1e3
    follower.follow(reading(0, 0, energy=top_j - 1), "nvml")
    (seen,) = follower.follow(reading(1, 0, energy=2), "nvml").samples
    assert seen.energy_joules_total == pytest.approx(top_j + 2)


def test_gpu_that_comes_back_goes_on_from_its_totals() -> None:
    follower = GpuFollower()
    follower.follow(reading(0, 1_000), "nvml")
    follower.follow(reading(1, 5, uuid="GPU-b"), "nvml")
    (seen,) = follower.follow(reading(2, 40), "nvml").samples
    assert seen.pcie.bytes_total == {"tx": 1_040}, "a reset GPU counts from 0"


def test_gpu_that_left_long_ago_is_forgotten() -> None:
    follower = GpuFollower()
    follower.follow(reading(0, 1_000), "nvml")
    follower.follow(reading(601, 5, uuid="GPU-b"), "nvml")
    (seen,) = follower.follow(reading(602, 40), "nvml").samples
    assert seen.pcie.bytes_total == {"tx": 40}


def test_lost_gpu_keeps_its_index_and_its_xids() -> None:
    follower = GpuFollower()
    first = reading(0, 0)
    follower.follow(GpuReading(first.samples, xids={("GPU-a", 79): 0}), "nvml")
    lost = GpuReading((), errors={"GPU-a": "GPU is lost"}, xids={("GPU-a", 79): 1})
    seen = follower.follow(lost, "nvml")
    assert seen.indexes == {"GPU-a": 3}
    assert seen.xids == {("GPU-a", 79): 1}


def test_xids_are_not_counted_again_when_the_source_changes() -> None:
    """The source that is chosen anew goes on from the counts of the one before."""
    follower = GpuFollower()
    follower.follow(GpuReading((), xids={("GPU-a", 31): 2}), "nvml")
    seen = follower.follow(GpuReading((), xids={("GPU-a", 31): 3}), "dcgm")
    assert seen.xids == {("GPU-a", 31): 3}


def test_xids_that_are_counted_from_0_again_go_on() -> None:
    follower = GpuFollower()
    follower.follow(GpuReading((), xids={("GPU-a", 31): 2}), "nvml")
    seen = follower.follow(GpuReading((), xids={("GPU-a", 31): 1}), "nvml")
    assert seen.xids == {("GPU-a", 31): 3}
    assert follower.follow(GpuReading(()), "nvml").xids == {("GPU-a", 31): 3}, "silent source"


@pytest.mark.parametrize(
    ("code", "action"),
    [
        (13, "application"),
        (31, "application"),
        (43, "application"),
        (45, "application"),
        (48, "reset_gpu"),
        (63, "watch"),
        (64, "reset_gpu"),
        (74, "check_link"),
        (79, "restart_node"),
        (92, "watch"),
        (94, "application"),
        (95, "reset_gpu"),
        (119, "reset_gpu"),
        (120, "reset_gpu"),
        (9999, "unknown"),
    ],
)
def test_xid_asks_for_an_action(code: int, action: str) -> None:
    assert xid.xid_class(code) == action


def test_announced_xids_are_known_ones() -> None:
    assert all(xid.xid_class(code) != "unknown" for code in xid.ANNOUNCED_XIDS)


def test_throttle_bits_without_a_name_are_not_lost() -> None:
    assert throttle.throttle_reasons(1 << 20 | 0x8) == {"hardware_slowdown", "other"}


@pytest.mark.parametrize("module", [throttle, xid])
def test_examples_hold(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted > 0
    assert not result.failed
