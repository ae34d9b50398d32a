"""GPUs that models are planned for: what their data sheets say, each number with its source.

A number that no public source states is None: a plan says so and goes without.
"""

from dataclasses import dataclass

__all__ = ["GPU_KINDS", "SHEETS", "GpuKind", "pcie_bytes_per_s"]

GB, MIB, TB = 10**9, 1024**2, 10**12

# Raw rate of a lane, transfers a second; from generation 3 on 128 of 130 bits are data.
PCIE_TRANSFERS_PER_S = {3: 8 * GB, 4: 16 * GB, 5: 32 * GB}
PCIE_CODE = 128 / 130
"""PCI Express Base Specification, 128b/130b encoding. Generation 6 has another."""

SHEETS = {
    "v100": "NVIDIA V100 Tensor Core GPU data sheet",
    "t4": "NVIDIA T4 Tensor Core GPU data sheet",
    "a10": "NVIDIA A10 Tensor Core GPU data sheet",
    "a10g": "Amazon EC2 G5 instances, product page; NVIDIA A10G in the driver's own report",
    "a30": "NVIDIA A30 Tensor Core GPU data sheet",
    "a40": "NVIDIA A40 data sheet",
    "a100": "NVIDIA A100 Tensor Core GPU data sheet",
    "l4": "NVIDIA L4 Tensor Core GPU data sheet",
    "l40": "NVIDIA L40 GPU data sheet",
    "l40s": "NVIDIA L40S GPU data sheet",
    "3090": "NVIDIA GeForce RTX 3090, specifications",
    "4090": "NVIDIA GeForce RTX 4090, specifications",
    "5090": "NVIDIA GeForce RTX 5090, specifications",
    "6000ada": "NVIDIA RTX 6000 Ada Generation data sheet",
    "pro6000": "NVIDIA RTX PRO 6000 Blackwell data sheet",
    "h100": "NVIDIA H100 Tensor Core GPU data sheet",
    "h200": "NVIDIA H200 Tensor Core GPU data sheet",
    "gh200": "NVIDIA GH200 Grace Hopper Superchip data sheet",
    "b200": "NVIDIA DGX B200 data sheet",
    "b300": "NVIDIA DGX B300 data sheet",
    "gb200": "NVIDIA GB200 NVL72 data sheet",
    "gb300": "NVIDIA GB300 NVL72 data sheet",
    "smi": "nvidia-smi of such a GPU, in public logs",
}
"""Sources by the short name under which a kind cites them."""


@dataclass(frozen=True, slots=True)
class GpuKind:
    """One product.

    Attributes:
        name: as people type it.
        products: names that the driver reports.
        memory_bytes: as marketed.
        memory_bytes_per_s: bandwidth of it.
        sheet: key of ``SHEETS`` for every number but ``usable_bytes``.
        usable_bytes: total that the driver reports (``SHEETS["smi"]``); ECC and the firmware take
            a little from what is marketed. None where no public report was found.
        nvlink_bytes_per_s: both directions together, all links; None without NVLink.
        nvlink_domain: GPUs that reach each other by NVLink in the vendor's own systems.
        pcie_generation: of its connector; None where the host is on the package.
        fp8: whether its tensor cores take FP8.
    """

    name: str
    products: tuple[str, ...]
    memory_bytes: int
    memory_bytes_per_s: float
    sheet: str
    usable_bytes: int | None = None
    nvlink_bytes_per_s: float | None = None
    nvlink_domain: int | None = None
    pcie_generation: int | None = None
    fp8: bool = False


def pcie_bytes_per_s(generation: int, lanes: int = 16) -> float | None:
    """Return what a PCIe link carries in one direction; None for a generation not known here.

    >>> round(pcie_bytes_per_s(4) / 1e9, 2)
    31.51
    """
    transfers = PCIE_TRANSFERS_PER_S.get(generation)
    return None if transfers is None else transfers * lanes * PCIE_CODE / 8


GPU_KINDS = (
    GpuKind("t4", ("Tesla T4",), 16 * GB, 320 * GB, "t4", 15360 * MIB, None, None, 3),
    GpuKind(
        "v100-sxm2-16",
        ("Tesla V100-SXM2-16GB",),
        *(16 * GB, 900 * GB, "v100", 16384 * MIB, 300 * GB, 8, 3),
    ),
    GpuKind(
        "v100-sxm2-32",
        ("Tesla V100-SXM2-32GB",),
        *(32 * GB, 900 * GB, "v100", 32768 * MIB, 300 * GB, 8, 3),
    ),
    GpuKind("a10", ("NVIDIA A10",), 24 * GB, 600 * GB, "a10", 23028 * MIB, None, None, 4),
    GpuKind("a10g", ("NVIDIA A10G",), 24 * GB, 600 * GB, "a10g", 23028 * MIB, None, None, 4),
    GpuKind("a30", ("NVIDIA A30",), 24 * GB, 933 * GB, "a30", 24576 * MIB, 200 * GB, 2, 4),
    GpuKind("a40", ("NVIDIA A40",), 48 * GB, 696 * GB, "a40", 46068 * MIB, 112.5 * GB, 2, 4),
    GpuKind(
        "a100-40-pcie",
        ("NVIDIA A100-PCIE-40GB",),
        *(40 * GB, 1555 * GB, "a100", 40960 * MIB, 600 * GB, 2, 4),
    ),
    GpuKind(
        "a100-40-sxm",
        ("NVIDIA A100-SXM4-40GB",),
        *(40 * GB, 1555 * GB, "a100", 40960 * MIB, 600 * GB, 8, 4),
    ),
    GpuKind(
        "a100-80-pcie",
        ("NVIDIA A100 80GB PCIe",),
        *(80 * GB, 1935 * GB, "a100", 81920 * MIB, 600 * GB, 2, 4),
    ),
    GpuKind(
        "a100-80-sxm",
        ("NVIDIA A100-SXM4-80GB",),
        *(80 * GB, 2039 * GB, "a100", 81920 * MIB, 600 * GB, 8, 4),
    ),
    GpuKind("l4", ("NVIDIA L4",), 24 * GB, 300 * GB, "l4", 23034 * MIB, None, None, 4, True),
    GpuKind("l40", ("NVIDIA L40",), 48 * GB, 864 * GB, "l40", 46068 * MIB, None, None, 4, True),
    GpuKind("l40s", ("NVIDIA L40S",), 48 * GB, 864 * GB, "l40s", 46068 * MIB, None, None, 4, True),
    GpuKind(
        "rtx-3090",
        ("NVIDIA GeForce RTX 3090",),
        *(24 * GB, 936 * GB, "3090", 24576 * MIB, 112.5 * GB, 2, 4),
    ),
    GpuKind(
        "rtx-4090",
        ("NVIDIA GeForce RTX 4090",),
        *(24 * GB, 1008 * GB, "4090", 24564 * MIB, None, None, 4, True),
    ),
    GpuKind(
        "rtx-5090",
        ("NVIDIA GeForce RTX 5090",),
        *(32 * GB, 1792 * GB, "5090", 32607 * MIB, None, None, 5, True),
    ),
    GpuKind(
        "rtx-6000-ada",
        ("NVIDIA RTX 6000 Ada Generation",),
        *(48 * GB, 960 * GB, "6000ada", 49140 * MIB, None, None, 4, True),
    ),
    GpuKind(
        "rtx-pro-6000",
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition",),
        *(96 * GB, 1792 * GB, "pro6000", 97887 * MIB, None, None, 5, True),
    ),
    GpuKind(
        "h100-pcie",
        ("NVIDIA H100 PCIe",),
        *(80 * GB, 2000 * GB, "h100", 81559 * MIB, 600 * GB, 2, 5, True),
    ),
    GpuKind(
        "h100-nvl",
        ("NVIDIA H100 NVL",),
        *(94 * GB, 3900 * GB, "h100", 95830 * MIB, 600 * GB, 2, 5, True),
    ),
    GpuKind(
        "h100-sxm",
        ("NVIDIA H100 80GB HBM3",),
        *(80 * GB, 3350 * GB, "h100", 81559 * MIB, 900 * GB, 8, 5, True),
    ),
    GpuKind(
        "h200-sxm",
        ("NVIDIA H200",),
        *(141 * GB, 4800 * GB, "h200", 143771 * MIB, 900 * GB, 8, 5, True),
    ),
    GpuKind(
        "h200-nvl",
        ("NVIDIA H200 NVL",),
        *(141 * GB, 4800 * GB, "h200", 143771 * MIB, 900 * GB, 4, 5, True),
    ),
    GpuKind(
        "gh200-96",
        ("NVIDIA GH200 480GB",),
        *(96 * GB, 4000 * GB, "gh200", 97871 * MIB, 900 * GB, None, 5, True),
    ),
    GpuKind("gh200-144", (), 144 * GB, 4900 * GB, "gh200", None, 900 * GB, None, 5, True),
    GpuKind(
        "b200",
        ("NVIDIA B200",),
        *(180 * GB, 8 * TB, "b200", 183359 * MIB, 1800 * GB, 8, None, True),
    ),
    GpuKind("b300", ("NVIDIA B300",), 288 * GB, 8 * TB, "b300", None, 1800 * GB, 8, None, True),
    GpuKind(
        "gb200",
        ("NVIDIA GB200",),
        *(186 * GB, 8 * TB, "gb200", None, 1800 * GB, 72, None, True),
    ),
    GpuKind(
        "gb300",
        ("NVIDIA GB300",),
        *(288 * GB, 8 * TB, "gb300", None, 1800 * GB, 72, None, True),
    ),
)
