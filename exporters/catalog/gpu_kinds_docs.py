"""Writes docs/gpu-kinds.md: ``python -m vramscope.exporters.catalog.gpu_kinds_docs``."""

import sys

from vramscope.exporters.catalog.gpu_kinds import GPU_KINDS, SHEETS, GpuKind, pcie_bytes_per_s

__all__ = ["gpu_kinds_page"]

INTRODUCTION = """\
# Kinds of GPU

<!-- Generated from vramscope/exporters/catalog/gpu_kinds.py by `make docs`. Do not edit. -->

What `vramscope plan --gpu KIND` knows. "GPU memory" is what is marketed, "reported" what the driver
says there is (from public logs): a plan takes the reported number where there is one. NVLink is
both directions and all links together, PCIe one direction of 16 lanes: transfers a second x 16 x
128/130 / 8. An empty cell is a number without a source here, or a GPU without such a link.

"""
HEAD = (
    *("kind", "GPU memory", "reported", "bandwidth", "NVLink", "NVLink domain"),
    *("PCIe", "FP8", "source"),
)


def gpu_kinds_page() -> str:
    """Return the page."""
    lines = [f"| {' | '.join(HEAD)} |", f"|{'---|' * len(HEAD)}"]
    lines += [f"| {' | '.join(_cells(kind))} |" for kind in GPU_KINDS]
    used = {kind.sheet for kind in GPU_KINDS}
    sources = [f"- `{key}`: {title}" for key, title in SHEETS.items() if key in used | {"smi"}]
    return INTRODUCTION + "\n".join([*lines, "", "## Sources", "", *sources]) + "\n"


def _cells(kind: GpuKind) -> list[str]:
    pcie = None if kind.pcie_generation is None else pcie_bytes_per_s(kind.pcie_generation)
    generation = f"gen {kind.pcie_generation}, {pcie / 1e9:.1f} GB/s" if pcie else ""
    return [
        f"`{kind.name}`",
        f"{kind.memory_bytes / 1e9:g} GB",
        "" if kind.usable_bytes is None else f"{kind.usable_bytes / 2**20:,.0f} MiB",
        f"{kind.memory_bytes_per_s / 1e9:,.0f} GB/s",
        "" if kind.nvlink_bytes_per_s is None else f"{kind.nvlink_bytes_per_s / 1e9:,.4g} GB/s",
        "" if kind.nvlink_domain is None else str(kind.nvlink_domain),
        generation,
        "yes" if kind.fp8 else "no",
        f"`{kind.sheet}`",
    ]


if __name__ == "__main__":
    sys.stdout.write(gpu_kinds_page())
