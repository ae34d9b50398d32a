"""Each name finds one kind of GPU; a name of several or of none says which there are."""

import pytest

from vramscope.exporters.catalog.gpu_kind import GpuKind
from vramscope.exporters.catalog.gpu_kind_names import UnknownGpuError, find_kind
from vramscope.exporters.catalog.gpu_kinds import GPU_KINDS


def test_no_two_kinds_have_a_name_in_common() -> None:
    names = [
        "".join(filter(str.isalnum, name.lower())) for kind in GPU_KINDS for name in kind.names
    ]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", GPU_KINDS, ids=lambda kind: kind.name)
def test_kind_is_found_by_each_of_its_names(kind: GpuKind) -> None:
    for name in kind.names:
        assert find_kind(name) is kind
        assert find_kind(name.upper().replace("-", "_")) is kind
        assert find_kind(name.replace(" ", "-")) is kind, "as a Kubernetes label"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("nvidia h100 80gb hbm3", "h100-sxm"),
        ("A100-SXM4-80GB", "a100-80-sxm"),
        ("a100 sxm 80", "a100-80-sxm"),
        ("RTX4090", "rtx-4090"),
        ("4090", "rtx-4090"),
        ("GeForce RTX 5090", "rtx-5090"),
        ("L40", "l40"),
        ("NVIDIA H200", "h200-sxm"),
        ("b300", "b300"),
    ],
)
def test_kind_is_found_by_words_that_only_it_has(text: str, name: str) -> None:
    assert find_kind(text).name == name


@pytest.mark.parametrize(
    ("text", "several"),
    [
        ("h100", "h100-pcie or h100-nvl or h100-sxm"),
        ("H100 80GB", "h100-pcie or h100-sxm"),
        ("h200", "h200-sxm or h200-nvl"),
        ("a100-80gb", "a100-80-pcie or a100-80-sxm"),
        ("v100 sxm2", "v100-16-sxm or v100-32-sxm"),
        ("gh200", "gh200-96 or gh200-144"),
        ("rtx pro 6000", "rtx-pro-6000-workstation or rtx-pro-6000-server"),
    ],
)
def test_name_of_several_names_them(text: str, several: str) -> None:
    with pytest.raises(UnknownGpuError) as error:
        find_kind(text)
    assert str(error.value) == f"{text}: several GPUs have this name: want {several}"


def test_unknown_name_says_which_are_near() -> None:
    with pytest.raises(UnknownGpuError, match=r"^h101-sxm: no such GPU is known here: .*h100-sxm"):
        find_kind("h101-sxm")


@pytest.mark.parametrize("text", ["", "-", "x" * 1000, "mi300x"])
def test_name_near_none_says_what_is_known(text: str) -> None:
    with pytest.raises(UnknownGpuError, match=r"no such GPU is known here: want .*--gpu-memory"):
        find_kind(text)
