"""The table of GPUs: each number has a source and fits the others."""

from pathlib import Path

import pytest

from vramscope.exporters.catalog.gpu_kind import NUMBERS, GpuKind, pcie_bytes_per_s
from vramscope.exporters.catalog.gpu_kind_sources import SOURCES
from vramscope.exporters.catalog.gpu_kinds import GPU_KINDS
from vramscope.exporters.catalog.gpu_kinds_docs import gpu_kinds_page

DOCS = Path(__file__).parents[3] / "docs"

every_kind = pytest.mark.parametrize("kind", GPU_KINDS, ids=lambda kind: kind.name)


def test_page_is_in_date() -> None:
    assert (DOCS / "gpu-kinds.md").read_text() == gpu_kinds_page(), "run: make docs"


@every_kind
def test_every_number_has_a_source(kind: GpuKind) -> None:
    for number in NUMBERS:
        if getattr(kind, number) is None:
            assert kind.source(number) is None
        else:
            assert kind.source(number) in SOURCES, number


@every_kind
def test_another_source_is_named_only_for_a_number_that_is_there(kind: GpuKind) -> None:
    for number, source in kind.elsewhere:
        assert number in NUMBERS
        assert kind.source(number) == source != kind.sheet or number == "nvlink_links"


def test_every_source_is_used() -> None:
    used = {kind.source(number) for kind in GPU_KINDS for number in NUMBERS}
    assert used - {None} == set(SOURCES)


@every_kind
def test_driver_reports_between_decimal_and_binary_gigabytes(kind: GpuKind) -> None:
    gigabytes = kind.memory_bytes / 1e9
    assert gigabytes.is_integer()
    assert kind.usable_bytes is not None
    # So the marketed number stands in for one that is not known, and never promises too much.
    assert gigabytes * 10**9 < kind.usable_bytes <= gigabytes * 2**30


@every_kind
def test_bandwidth_reads_the_whole_memory_in_10_to_100_ms(kind: GpuKind) -> None:
    assert 0.01 < kind.memory_bytes / kind.memory_bytes_per_s < 0.1


@every_kind
def test_nvlink_is_links_times_what_one_link_of_its_generation_carries(kind: GpuKind) -> None:
    if kind.nvlink_bytes_per_s is None:
        assert kind.nvlink_links is None
        assert kind.nvlink_domain is None
        return
    assert kind.nvlink_links is not None
    major, minor = kind.compute_capability
    link = {7: 50e9, 8: 28.125e9 if minor == 6 else 50e9, 9: 50e9, 10: 100e9}[major]
    assert kind.nvlink_bytes_per_s == kind.nvlink_links * link


@every_kind
def test_bf16_is_known_only_of_tensor_cores_that_have_it(kind: GpuKind) -> None:
    if kind.compute_capability < (8, 0):
        assert kind.bf16_flops_per_s is None
    if kind.bf16_flops_per_s is not None:
        assert 60e12 < kind.bf16_flops_per_s < 3000e12


@pytest.mark.parametrize(("generation", "sheet_says"), [(3, 32e9), (4, 64e9), (5, 128e9)])
def test_pcie_carries_what_sheets_round_up_for_both_directions(
    generation: int, sheet_says: float
) -> None:
    assert 2 * (pcie_bytes_per_s(generation) or 0) == pytest.approx(sheet_says * 128 / 130)


def test_pcie_rate_hangs_on_generation_and_lanes() -> None:
    assert pcie_bytes_per_s(5) == pytest.approx(32e9 * 16 * 128 / 130 / 8)
    assert pcie_bytes_per_s(4, lanes=8) == (pcie_bytes_per_s(4) or 0) / 2
    assert pcie_bytes_per_s(6) is None


@every_kind
def test_kinds_rate_is_its_generations_and_only_superchips_have_no_pcie(kind: GpuKind) -> None:
    if kind.pcie_generation is None:
        assert kind.pcie_bytes_per_s is None
        assert kind.name.startswith("g"), "GH200, GB200, GB300"
    else:
        assert kind.pcie_bytes_per_s == pcie_bytes_per_s(kind.pcie_generation)


def test_fp8_begins_with_ada() -> None:
    with_fp8 = {kind.name for kind in GPU_KINDS if kind.fp8}
    assert {"l4", "l40s", "rtx-4090", "h100-sxm", "b200", "rtx-5090"} <= with_fp8
    assert not {"v100-32-sxm", "t4", "a10g", "a100-80-sxm", "rtx-3090"} & with_fp8
