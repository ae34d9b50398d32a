"""RTX cards: GeForce and professional, some of them in servers too."""

from functools import partial

from vramscope.exporters.catalog.gpu_kind import GpuKind

__all__ = ["RTX_KINDS"]

GB, MIB, TFLOPS = 10**9, 1024**2, 1e12

_ADA = partial(GpuKind, pcie_generation=4, compute_capability=(8, 9))
_RTX_BLACKWELL = partial(GpuKind, pcie_generation=5, compute_capability=(12, 0))
_RTX_PRO_6000 = partial(_RTX_BLACKWELL, memory_bytes=96 * GB, usable_bytes=97887 * MIB)

RTX_KINDS = (
    GpuKind(
        name="rtx-3090",
        products=("NVIDIA GeForce RTX 3090",),
        memory_bytes=24 * GB,
        usable_bytes=24576 * MIB,
        memory_bytes_per_s=936 * GB,
        nvlink_bytes_per_s=112.5 * GB,
        nvlink_links=4,
        nvlink_domain=2,
        pcie_generation=4,
        compute_capability=(8, 6),
        bf16_flops_per_s=71 * TFLOPS,
        sheet="ga102",
        elsewhere=(("nvlink_links", "ga102"),),
    ),
    _ADA(
        name="rtx-4090",
        products=("NVIDIA GeForce RTX 4090",),
        memory_bytes=24 * GB,
        usable_bytes=24564 * MIB,
        memory_bytes_per_s=1008 * GB,
        bf16_flops_per_s=165.2 * TFLOPS,
        sheet="ada",
    ),
    _ADA(
        name="rtx-6000-ada",
        products=("NVIDIA RTX 6000 Ada Generation",),
        memory_bytes=48 * GB,
        usable_bytes=49140 * MIB,
        memory_bytes_per_s=960 * GB,
        sheet="rtx-6000-ada",
    ),
    _RTX_BLACKWELL(
        name="rtx-5090",
        products=("NVIDIA GeForce RTX 5090",),
        memory_bytes=32 * GB,
        usable_bytes=32607 * MIB,
        memory_bytes_per_s=1792 * GB,
        bf16_flops_per_s=209.5 * TFLOPS,
        sheet="rtx-blackwell",
    ),
    _RTX_PRO_6000(
        name="rtx-pro-6000-workstation",
        products=(
            "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
            "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
        ),
        memory_bytes_per_s=1792 * GB,
        sheet="rtx-pro-6000",
    ),
    _RTX_PRO_6000(
        name="rtx-pro-6000-server",
        products=("NVIDIA RTX PRO 6000 Blackwell Server Edition",),
        memory_bytes_per_s=1597 * GB,
        sheet="rtx-pro-6000-server",
    ),
)
