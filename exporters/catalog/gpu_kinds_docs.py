"""Writes docs/gpu-kinds.md: ``python -m vramscope.exporters.catalog.gpu_kinds_docs``."""

import sys
from collections.abc import Callable, Iterable

from vramscope.exporters.catalog.gpu_kind import GpuKind
from vramscope.exporters.catalog.gpu_kind_sources import SOURCES
from vramscope.exporters.catalog.gpu_kinds import GPU_KINDS

__all__ = ["gpu_kinds_page"]

INTRODUCTION = """\
# Kinds of GPU

<!-- Generated from vramscope/exporters/catalog/gpu_kinds.py by `make docs`. Do not edit. -->

What `vramscope plan --gpu KIND` knows. A kind is found by its name, by the name that the driver
reports, or by words that only one kind has; case and punctuation don't count. An empty cell is a
number that no source here states, or a link that the GPU doesn't have.

## Memory

"Marketed" is the data sheet's number. "Reported" is the total that `nvidia-smi` and NVML show, with
ECC as it is set by default, for drivers from 510 on; older ones leave out a few hundred MiB that
they keep. The sheet's GB are nearly GiB: the driver reports at most that many times 2^30 bytes, and
more than that many times 10^9. A plan takes the reported number, and without one the marketed
number in units of 10^9 bytes, which is never too much.

CUDA, and so vLLM's `gpu_memory_utilization`, counts a little less than is reported, as the driver
keeps a part for itself: 139.8 of 140.4 GiB on an H200, 178.4 of 179.1 GiB on a B200 (PyTorch's
out-of-memory messages in public logs).

"""
LINKS = """
## Links and compute

NVLink is both directions and all links of one GPU together; its domain is how many GPUs reach each
other by it (bridged cards, a baseboard, a rack), empty where that differs by system. PCIe is one
direction of 16 lanes: transfers a second x 16 x 128/130 / 8, before the headers of packets.
Generation 6 has another encoding and gets no rate here. The GPU of a superchip (GH200, GB200,
GB300) reaches its CPU by NVLink-C2C instead. BF16 is dense, by tensor cores that add up in FP32,
half of what a sheet states with sparsity; GPUs before compute capability 8.0 have none. FP8 follows
from compute capability 8.9.

"""
CITED = """
## Which number is from where

All reported totals are from `smi` and all compute capabilities from `cuda`; NVLink's links are its
rate over that of one link (`nvlink`, and 28.125 GB/s on GA102 by `ga102`). The rest of a kind is
from its own source, but for what the last column names.

"""
HEADINGS = {
    "memory_bytes": "marketed",
    "memory_bytes_per_s": "bandwidth",
    "nvlink_links": "links",
    "nvlink_domain": "domain",
    "pcie_generation": "PCIe",
    "bf16_flops_per_s": "BF16",
}


def gpu_kinds_page() -> str:
    """Return the page."""
    return (
        INTRODUCTION
        + _table(("kind", "driver's name", "marketed", "reported", "bandwidth"), _memory)
        + LINKS
        + _table(
            ("kind", "NVLink", "links", "domain", "PCIe", "compute capability", "BF16", "FP8"),
            _links,
        )
        + CITED
        + _table(("kind", "source", "other sources"), _cited)
        + "\n## Sources\n\n"
        + "".join(f"- `{key}`: {_document(key)}\n" for key in SOURCES)
    )


def _table(head: tuple[str, ...], row: Callable[[GpuKind], Iterable[str]]) -> str:
    lines = [head, ["---"] * len(head), *(row(kind) for kind in GPU_KINDS)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _memory(kind: GpuKind) -> list[str]:
    return [
        f"`{kind.name}`",
        ", ".join(kind.products),
        f"{kind.memory_bytes / 1e9:g} GB",
        "" if kind.usable_bytes is None else f"{kind.usable_bytes / 2**20:,.0f} MiB",
        f"{kind.memory_bytes_per_s / 1e9:,.0f} GB/s",
    ]


def _links(kind: GpuKind) -> list[str]:
    pcie = "" if kind.pcie_generation is None else f"gen {kind.pcie_generation}"
    if kind.pcie_bytes_per_s is not None:
        pcie += f", {kind.pcie_bytes_per_s / 1e9:.1f} GB/s"
    major, minor = kind.compute_capability
    return [
        f"`{kind.name}`",
        "" if kind.nvlink_bytes_per_s is None else f"{kind.nvlink_bytes_per_s / 1e9:,g} GB/s",
        "" if kind.nvlink_links is None else str(kind.nvlink_links),
        "" if kind.nvlink_domain is None else str(kind.nvlink_domain),
        pcie,
        f"{major}.{minor}",
        "" if kind.bf16_flops_per_s is None else f"{kind.bf16_flops_per_s / 1e12:,g} Tflop/s",
        "yes" if kind.fp8 else "no",
    ]


def _cited(kind: GpuKind) -> list[str]:
    others = (f"{HEADINGS[number]}: `{source}`" for number, source in kind.elsewhere)
    return [f"`{kind.name}`", f"`{kind.sheet}`", ", ".join(others)]


def _document(key: str) -> str:
    source = SOURCES[key]
    return source.title if source.url is None else f"[{source.title}]({source.url})"


if __name__ == "__main__":
    sys.stdout.write(gpu_kinds_page())
