"""The GPUs that a model can be planned for.

What the models of a family share is written once. A number that no public source states is left
out: a plan says so and goes without.
"""

from functools import partial

from vramscope.exporters.catalog.gpu_kind import GpuKind
from vramscope.exporters.catalog.gpu_kinds_rtx import RTX_KINDS

__all__ = ["GPU_KINDS"]

GB, MIB, TFLOPS = 10**9, 1024**2, 1e12

_VOLTA = partial(
    GpuKind,
    memory_bytes_per_s=900 * GB,
    pcie_generation=3,
    compute_capability=(7, 0),
    sheet="v100",
)
_V100_SXM = partial(_VOLTA, nvlink_bytes_per_s=300 * GB, nvlink_links=6)

_A10 = partial(
    GpuKind,
    memory_bytes=24 * GB,
    usable_bytes=23028 * MIB,
    memory_bytes_per_s=600 * GB,
    pcie_generation=4,
    compute_capability=(8, 6),
)
_A100 = partial(
    GpuKind,
    nvlink_bytes_per_s=600 * GB,
    nvlink_links=12,
    pcie_generation=4,
    compute_capability=(8, 0),
    bf16_flops_per_s=312 * TFLOPS,
    sheet="a100",
)
_A100_CARD = partial(_A100, nvlink_domain=2)
_A100_SXM = partial(_A100, nvlink_domain=8)

_ADA = partial(GpuKind, pcie_generation=4, compute_capability=(8, 9))
_L40 = partial(_ADA, memory_bytes=48 * GB, usable_bytes=46068 * MIB, memory_bytes_per_s=864 * GB)

_HOPPER = partial(GpuKind, compute_capability=(9, 0), nvlink_bytes_per_s=900 * GB, nvlink_links=18)
_H200 = partial(
    _HOPPER,
    memory_bytes=141 * GB,
    usable_bytes=143771 * MIB,
    memory_bytes_per_s=4800 * GB,
    pcie_generation=5,
    sheet="h200",
)
_H100_CARD = partial(
    _HOPPER, nvlink_bytes_per_s=600 * GB, nvlink_links=12, nvlink_domain=2, pcie_generation=5
)
_GH200 = partial(_HOPPER, bf16_flops_per_s=989.5 * TFLOPS, sheet="gh200")

_BLACKWELL = partial(
    GpuKind,
    memory_bytes_per_s=8000 * GB,
    nvlink_bytes_per_s=1800 * GB,
    nvlink_links=18,
    compute_capability=(10, 0),
)
_BLACKWELL_ULTRA = partial(_BLACKWELL, memory_bytes=288 * GB, compute_capability=(10, 3))

GPU_KINDS = (
    _VOLTA(
        name="v100-16-pcie",
        products=("Tesla V100-PCIE-16GB",),
        memory_bytes=16 * GB,
        usable_bytes=16384 * MIB,
    ),
    _VOLTA(
        name="v100-32-pcie",
        products=("Tesla V100-PCIE-32GB",),
        memory_bytes=32 * GB,
        usable_bytes=32768 * MIB,
    ),
    _V100_SXM(
        name="v100-16-sxm",
        products=("Tesla V100-SXM2-16GB",),
        memory_bytes=16 * GB,
        usable_bytes=16384 * MIB,
    ),
    _V100_SXM(
        name="v100-32-sxm",
        products=("Tesla V100-SXM2-32GB",),
        memory_bytes=32 * GB,
        usable_bytes=32768 * MIB,
    ),
    GpuKind(
        name="t4",
        products=("Tesla T4",),
        memory_bytes=16 * GB,
        usable_bytes=15360 * MIB,
        memory_bytes_per_s=320 * GB,
        pcie_generation=3,
        compute_capability=(7, 5),
        sheet="t4",
    ),
    _A10(
        name="a10",
        products=("NVIDIA A10",),
        bf16_flops_per_s=125 * TFLOPS,
        sheet="a10",
    ),
    _A10(
        name="a10g",
        products=("NVIDIA A10G",),
        bf16_flops_per_s=70 * TFLOPS,
        sheet="a10g",
    ),
    GpuKind(
        name="a30",
        products=("NVIDIA A30",),
        memory_bytes=24 * GB,
        usable_bytes=24576 * MIB,
        memory_bytes_per_s=933 * GB,
        nvlink_bytes_per_s=200 * GB,
        nvlink_links=4,
        nvlink_domain=2,
        pcie_generation=4,
        compute_capability=(8, 0),
        bf16_flops_per_s=165 * TFLOPS,
        sheet="a30",
    ),
    GpuKind(
        name="a40",
        products=("NVIDIA A40",),
        memory_bytes=48 * GB,
        usable_bytes=46068 * MIB,
        memory_bytes_per_s=696 * GB,
        nvlink_bytes_per_s=112.5 * GB,
        nvlink_links=4,
        nvlink_domain=2,
        pcie_generation=4,
        compute_capability=(8, 6),
        bf16_flops_per_s=149.7 * TFLOPS,
        sheet="a40",
        elsewhere=(("nvlink_links", "ga102"),),
    ),
    _A100_CARD(
        name="a100-40-pcie",
        products=("NVIDIA A100-PCIE-40GB",),
        memory_bytes=40 * GB,
        usable_bytes=40960 * MIB,
        memory_bytes_per_s=1555 * GB,
    ),
    _A100_SXM(
        name="a100-40-sxm",
        products=("NVIDIA A100-SXM4-40GB",),
        memory_bytes=40 * GB,
        usable_bytes=40960 * MIB,
        memory_bytes_per_s=1555 * GB,
    ),
    _A100_CARD(
        name="a100-80-pcie",
        products=("NVIDIA A100 80GB PCIe",),
        memory_bytes=80 * GB,
        usable_bytes=81920 * MIB,
        memory_bytes_per_s=1935 * GB,
    ),
    _A100_SXM(
        name="a100-80-sxm",
        products=("NVIDIA A100-SXM4-80GB",),
        memory_bytes=80 * GB,
        usable_bytes=81920 * MIB,
        memory_bytes_per_s=2039 * GB,
    ),
    _ADA(
        name="l4",
        products=("NVIDIA L4",),
        memory_bytes=24 * GB,
        usable_bytes=23034 * MIB,
        memory_bytes_per_s=300 * GB,
        bf16_flops_per_s=121 * TFLOPS,
        sheet="l4",
    ),
    _L40(
        name="l40",
        products=("NVIDIA L40",),
        bf16_flops_per_s=181.05 * TFLOPS,
        sheet="l40",
    ),
    _L40(
        name="l40s",
        products=("NVIDIA L40S",),
        bf16_flops_per_s=362.05 * TFLOPS,
        sheet="l40s",
    ),
    _H100_CARD(
        name="h100-pcie",
        products=("NVIDIA H100 PCIe",),
        aliases=("h100-80gb-pcie",),
        memory_bytes=80 * GB,
        usable_bytes=81559 * MIB,
        memory_bytes_per_s=2000 * GB,
        bf16_flops_per_s=756.5 * TFLOPS,
        sheet="h100-pcie",
    ),
    _H100_CARD(
        name="h100-nvl",
        products=("NVIDIA H100 NVL",),
        aliases=("h100-94gb",),
        memory_bytes=94 * GB,
        usable_bytes=95830 * MIB,
        memory_bytes_per_s=3900 * GB,
        bf16_flops_per_s=835.5 * TFLOPS,
        sheet="h100",
    ),
    _HOPPER(
        name="h100-sxm",
        products=("NVIDIA H100 80GB HBM3",),
        aliases=("h100-sxm5",),
        memory_bytes=80 * GB,
        usable_bytes=81559 * MIB,
        memory_bytes_per_s=3350 * GB,
        nvlink_domain=8,
        pcie_generation=5,
        bf16_flops_per_s=989.5 * TFLOPS,
        sheet="h100",
    ),
    _H200(
        name="h200-sxm",
        products=("NVIDIA H200",),
        aliases=("h200-sxm5",),
        nvlink_domain=8,
        bf16_flops_per_s=989.5 * TFLOPS,
    ),
    _H200(
        name="h200-nvl",
        products=("NVIDIA H200 NVL",),
        nvlink_domain=4,
        bf16_flops_per_s=835.5 * TFLOPS,
    ),
    _GH200(
        name="gh200-96",
        products=("NVIDIA GH200 480GB", "NVIDIA GH200 120GB"),
        aliases=("gh200-96gb",),
        memory_bytes=96 * GB,
        usable_bytes=97871 * MIB,
        memory_bytes_per_s=4000 * GB,
    ),
    _GH200(
        name="gh200-144",
        products=("NVIDIA GH200 144G HBM3e",),
        aliases=("gh200-144gb",),
        memory_bytes=144 * GB,
        usable_bytes=146831 * MIB,
        memory_bytes_per_s=4900 * GB,
    ),
    _BLACKWELL(
        name="b200",
        products=("NVIDIA B200",),
        aliases=("b200-sxm",),
        memory_bytes=180 * GB,
        usable_bytes=183359 * MIB,
        nvlink_domain=8,
        pcie_generation=5,
        bf16_flops_per_s=2250 * TFLOPS,
        sheet="b200",
        elsewhere=(("bf16_flops_per_s", "hgx"), ("pcie_generation", "mlperf")),
    ),
    _BLACKWELL_ULTRA(
        name="b300",
        products=("NVIDIA B300 SXM6 AC",),
        aliases=("b300-sxm",),
        usable_bytes=275040 * MIB,
        nvlink_domain=8,
        pcie_generation=6,
        bf16_flops_per_s=2250 * TFLOPS,
        sheet="blackwell-ultra",
        elsewhere=(("bf16_flops_per_s", "hgx"), ("nvlink_domain", "hgx")),
    ),
    _BLACKWELL(
        name="gb200",
        products=("NVIDIA GB200",),
        memory_bytes=186 * GB,
        usable_bytes=189471 * MIB,
        nvlink_domain=72,
        bf16_flops_per_s=2500 * TFLOPS,
        sheet="gb200",
    ),
    # The GB300 of a DGX Station has the same driver's name and less memory: plan it by its size.
    _BLACKWELL_ULTRA(
        name="gb300",
        products=("NVIDIA GB300",),
        usable_bytes=284208 * MIB,
        nvlink_domain=72,
        bf16_flops_per_s=2500 * TFLOPS,
        sheet="gb300",
        elsewhere=(("memory_bytes", "blackwell-ultra"), ("memory_bytes_per_s", "blackwell-ultra")),
    ),
    *RTX_KINDS,
)
