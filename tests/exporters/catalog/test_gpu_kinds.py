"""The table of GPUs: each number has a source, each name finds one kind."""

from pathlib import Path

import pytest

from vramscope.exporters.catalog.gpu_kind_names import UnknownGpuError, find_kind
from vramscope.exporters.catalog.gpu_kinds import GPU_KINDS, SHEETS, GpuKind, pcie_bytes_per_s
from vramscope.exporters.catalog.gpu_kinds_docs import gpu_kinds_page

DOCS = Path(__file__).parents[3] / "docs"


def test_page_is_in_date() -> None:
    assert (DOCS / "gpu-kinds.md").read_text() == gpu_kinds_page(), "run: make docs"


def test_no_two_kinds_have_a_name_in_common() -> None:
    names = [name.lower() for kind in GPU_KINDS for name in (kind.name, *kind.products)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", GPU_KINDS, ids=lambda kind: kind.name)
def test_numbers_have_a_source_and_make_sense(kind: GpuKind) -> None:
    assert kind.sheet in SHEETS
    assert 10e9 <= kind.memory_bytes <= 400e9
    assert 200e9 <= kind.memory_bytes_per_s <= 10e12
    if kind.usable_bytes is not None:
        # Marketed gigabytes are sometimes meant as GiB; the driver never reports more than those.
        assert (
            0.9 * kind.memory_bytes <= kind.usable_bytes <= kind.memory_bytes / 1e9 * 2**30 * 1.01
        )
    assert (kind.nvlink_domain is None) or kind.nvlink_bytes_per_s is not None


def test_what_a_pcie_link_carries_hangs_on_generation_and_lanes() -> None:
    assert pcie_bytes_per_s(5) == 2 * (pcie_bytes_per_s(4) or 0)
    assert pcie_bytes_per_s(4, lanes=8) == (pcie_bytes_per_s(4) or 0) / 2
    assert pcie_bytes_per_s(6) is None


@pytest.mark.parametrize("text", ["h100-sxm", "H100_SXM", "nvidia h100 80gb hbm3"])
def test_kind_is_found_by_what_people_and_drivers_call_it(text: str) -> None:
    assert find_kind(text).name == "h100-sxm"


def test_name_of_several_names_them() -> None:
    with pytest.raises(UnknownGpuError, match=r"a100: several.*want a100-40-pcie or a100-40-sxm"):
        find_kind("a100")


@pytest.mark.parametrize("text", ["h101-sxm", "", "-", "x" * 1000])
def test_unknown_name_says_what_is_known(text: str) -> None:
    with pytest.raises(UnknownGpuError, match=r"no such GPU is known here: want .*--gpu-memory"):
        find_kind(text)
