"""Link utilisation, degraded links and the movement-bound verdict, by hand."""

import doctest

import pytest

from vramscope.exporters.signals import links
from vramscope.exporters.signals.gpu import GpuIdentity, GpuSample, LinkSample, PcieSample

GPU = GpuIdentity(0, "GPU-a")
UP = LinkSample(0, active=True, bytes_per_second_capacity=25e9, peer="switch")
DOWN = LinkSample(1, active=False, peer="switch")
GEN4_X16 = 16 * 16e9 * 128 / 130 / 8  # 31.5 GB/s


def sample(
    sm: float | None = 0.9,
    tensor: float | None = 0.1,
    dram: float | None = 0.1,
    pcie: float | None = 0.1,
    nvlink: float | None = None,
) -> GpuSample:
    """A GPU whose resources are used by the shares given; None is not known."""
    activity = {"sm": sm, "tensor": tensor, "dram": dram}
    rates = {} if pcie is None else {"tx": 0.0, "rx": pcie * GEN4_X16}
    return GpuSample(
        GPU,
        read_at_s=0,
        activity_ratio={unit: share for unit, share in activity.items() if share is not None},
        pcie=PcieSample(bytes_per_second=rates, max_generation=4, max_width=16),
        nvlink_bytes_per_second={} if nvlink is None else {"tx": nvlink * 50e9, "rx": 0.0},
        links=() if nvlink is None else (UP, UP),
    )


@pytest.mark.parametrize(
    ("generation", "gigabytes"),
    [(1, 4.0), (2, 8.0), (3, 15.754), (4, 31.508), (5, 63.015), (6, 121.0), (7, 242.0)],
)
def test_pcie_capacity_of_16_lanes_is_what_the_specification_gives(
    generation: int, gigabytes: float
) -> None:
    pcie = PcieSample(max_generation=generation, max_width=16)
    assert links.pcie_capacity(pcie) == pytest.approx(gigabytes * 1e9, rel=1e-4)


def test_pcie_capacity_is_not_that_of_a_downshifted_link() -> None:
    idle = PcieSample(generation=1, width=16, max_generation=4, max_width=16)
    assert links.pcie_capacity(idle) == GEN4_X16


@pytest.mark.parametrize("pcie", [PcieSample(), PcieSample(max_generation=9, max_width=16)])
def test_pcie_of_unknown_capacity_has_no_utilization(pcie: PcieSample) -> None:
    assert links.pcie_capacity(pcie) is None
    assert not links.pcie_utilization(pcie)


def test_pcie_utilization_is_by_direction() -> None:
    pcie = PcieSample(
        bytes_per_second={"tx": 16e9 * 128 / 130, "rx": 0.0}, max_generation=4, max_width=16
    )
    assert links.pcie_utilization(pcie) == {"tx": 0.5, "rx": 0}


def test_nvlink_capacity_counts_a_link_that_is_down() -> None:
    assert links.nvlink_capacity([UP, DOWN]) == 50e9


def test_nvlink_capacity_leaves_out_links_that_lead_nowhere() -> None:
    """A card without its bridge has links too."""
    bridged = LinkSample(0, active=True, bytes_per_second_capacity=25e9, peer="00000000:1C:00.0")
    assert links.nvlink_capacity([bridged, LinkSample(1, active=False)]) == 25e9
    assert links.nvlink_capacity([LinkSample(1, active=False)]) is None
    assert links.nvlink_capacity([]) is None


def test_nvlink_utilization_is_over_all_links() -> None:
    assert links.nvlink_utilization(sample(nvlink=0.25)) == {"tx": 0.25, "rx": 0}


@pytest.mark.parametrize(
    ("every", "degraded"),
    [
        ([UP, UP], False),
        ([UP, DOWN], True),
        ([UP, LinkSample(1, active=None, peer="switch")], None),
        ([LinkSample(0, active=False)], None),
        ([], None),
    ],
)
def test_nvlink_is_degraded_when_one_that_should_be_up_is_down(
    every: list[LinkSample], degraded: bool | None
) -> None:
    assert links.nvlink_degraded(every) is degraded


@pytest.mark.parametrize(
    ("generation", "width", "sm", "degraded"),
    [
        (5, 16, 0.9, False),
        (5, 16, 0.0, False),
        (4, 16, 0.9, True),
        (5, 8, 0.2, True),
        (1, 16, 0.1, None),
        (1, 16, None, None),
        (None, 16, 0.9, None),
    ],
)
def test_pcie_is_degraded_only_while_the_gpu_works(
    generation: int | None, width: int, sm: float | None, degraded: bool | None
) -> None:
    seen = GpuSample(
        GPU,
        read_at_s=0,
        activity_ratio={} if sm is None else {"sm": sm},
        pcie=PcieSample(generation=generation, max_generation=5, width=width, max_width=16),
    )
    assert links.pcie_degraded(seen) is degraded


def test_gpu_without_profiling_is_at_work_by_its_utilization() -> None:
    seen = GpuSample(
        GPU,
        read_at_s=0,
        utilization_ratio={"gpu": 1.0},
        pcie=PcieSample(generation=3, max_generation=5, width=16, max_width=16),
    )
    assert links.pcie_degraded(seen) is True


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (sample(sm=0.19, dram=0.9), "idle"),
        (sample(sm=0.2), "latency"),
        (sample(tensor=0.61, dram=0.6), "tensor"),
        (sample(tensor=0.3, dram=0.6), "dram"),
        (sample(tensor=0.3, dram=0.599), "latency"),
        (sample(pcie=0.7, dram=0.65), "pcie"),
        (sample(nvlink=0.8, dram=0.65), "nvlink"),
        (sample(sm=None), "unknown"),
        (sample(tensor=None, dram=0.9), "unknown"),
        (sample(dram=None), "unknown"),
        (sample(pcie=None), "unknown"),
    ],
)
def test_verdict(seen: GpuSample, verdict: str) -> None:
    assert links.bound(seen) == verdict


def test_verdict_misses_the_rate_of_nvlinks_that_are_there() -> None:
    seen = sample(dram=0.9)
    with_links = GpuSample(
        GPU, 0, activity_ratio=seen.activity_ratio, pcie=seen.pcie, links=(UP, UP)
    )
    assert links.bound(seen) == "dram"
    assert links.bound(with_links) == "unknown"


def test_verdict_of_a_gpu_whose_nvlinks_lead_nowhere_misses_nothing() -> None:
    seen = sample(dram=0.9)
    alone = GpuSample(
        GPU,
        0,
        activity_ratio=seen.activity_ratio,
        pcie=seen.pcie,
        links=(LinkSample(0, active=False),),
    )
    assert links.bound(alone) == "dram"


def test_examples_hold() -> None:
    result = doctest.testmod(links)
    assert result.attempted > 0
    assert not result.failed
