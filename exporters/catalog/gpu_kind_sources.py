"""Documents that the numbers of GPUs are from."""

from dataclasses import dataclass

__all__ = ["SOURCES", "Source"]

NVIDIA = "https://www.nvidia.com/en-us"
DOWNLOADS = "https://www.nvidia.com/content/dam/en-zz/Solutions"
WHITEPAPERS = "https://images.nvidia.com/aem-dam/Solutions/geforce"


@dataclass(frozen=True, slots=True)
class Source:
    """One document; no ``url`` where there are many of its sort."""

    title: str
    url: str | None = None


SOURCES = {
    "v100": Source(
        "NVIDIA V100 Tensor Core GPU, data sheet",
        "https://images.nvidia.com/content/technologies/volta/pdf/volta-v100-datasheet-update-us-1165301-r5.pdf",
    ),
    "t4": Source(
        "NVIDIA T4 Tensor Core GPU, product brief",
        f"{DOWNLOADS}/Data-Center/tesla-t4/t4-tensor-core-product-brief.pdf",
    ),
    "a10": Source("NVIDIA A10 Tensor Core GPU", f"{NVIDIA}/data-center/products/a10-gpu/"),
    "a10g": Source(
        "NVIDIA A10G for AWS, data sheet",
        "https://d1.awsstatic.com/product-marketing/ec2/NVIDIA_AWS_A10G_DataSheet_FINAL_02_17_2022.pdf",
    ),
    "a30": Source("NVIDIA A30 Tensor Core GPU", f"{NVIDIA}/data-center/products/a30-gpu/"),
    "a40": Source("NVIDIA A40", f"{NVIDIA}/data-center/a40/"),
    "a100": Source(
        "NVIDIA A100 Tensor Core GPU, data sheet",
        f"{DOWNLOADS}/Data-Center/a100/pdf/nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf",
    ),
    "ga102": Source(
        "NVIDIA Ampere GA102 GPU Architecture, whitepaper",
        "https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf",
    ),
    "l4": Source("NVIDIA L4 Tensor Core GPU", f"{NVIDIA}/data-center/l4/"),
    "l40": Source("NVIDIA L40 GPU", f"{NVIDIA}/data-center/l40/"),
    "l40s": Source("NVIDIA L40S GPU", f"{NVIDIA}/data-center/l40s/"),
    "ada": Source(
        "NVIDIA Ada GPU Architecture, whitepaper",
        f"{WHITEPAPERS}/ada/nvidia-ada-gpu-architecture.pdf",
    ),
    "rtx-6000-ada": Source(
        "NVIDIA RTX 6000 Ada Generation", f"{NVIDIA}/design-visualization/rtx-6000/"
    ),
    "rtx-blackwell": Source(
        "NVIDIA RTX Blackwell GPU Architecture, whitepaper",
        f"{WHITEPAPERS}/blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf",
    ),
    "rtx-pro-6000": Source(
        "NVIDIA RTX PRO 6000 Blackwell, workstation editions",
        f"{NVIDIA}/products/workstations/professional-desktop-gpus/rtx-pro-6000/",
    ),
    "rtx-pro-6000-server": Source(
        "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        f"{NVIDIA}/data-center/rtx-pro-6000-blackwell-server-edition/",
    ),
    "h100": Source("NVIDIA H100 Tensor Core GPU", f"{NVIDIA}/data-center/h100/"),
    "h100-pcie": Source("NVIDIA H100 Tensor Core GPU, data sheet of 2022 (SXM and PCIe)"),
    "h200": Source("NVIDIA H200 Tensor Core GPU", f"{NVIDIA}/data-center/h200/"),
    "gh200": Source(
        "NVIDIA GH200 Grace Hopper Superchip", f"{NVIDIA}/data-center/grace-hopper-superchip/"
    ),
    "hgx": Source("NVIDIA HGX platform, a GPU's share of eight", f"{NVIDIA}/data-center/hgx/"),
    "b200": Source("NVIDIA DGX B200, a GPU's share of eight", f"{NVIDIA}/data-center/dgx-b200/"),
    "mlperf": Source(
        "MLPerf Inference v6.0, description of a system with B200",
        "https://raw.githubusercontent.com/mlcommons/inference_results_v6.0/main/closed/Nebius/systems/nebius_b200_n1.json",
    ),
    "blackwell-ultra": Source(
        "Inside NVIDIA Blackwell Ultra, NVIDIA technical blog",
        "https://developer.nvidia.com/blog/inside-nvidia-blackwell-ultra-the-chip-powering-the-ai-factory-era/",
    ),
    "gb200": Source(
        "NVIDIA GB200 NVL72, a GPU's share of 72", f"{NVIDIA}/data-center/gb200-nvl72/"
    ),
    "gb300": Source(
        "NVIDIA GB300 NVL72, a GPU's share of 72", f"{NVIDIA}/data-center/gb300-nvl72/"
    ),
    "nvlink": Source(
        "NVIDIA NVLink: 50 GB/s a link, 100 from generation 5 on", f"{NVIDIA}/data-center/nvlink/"
    ),
    "cuda": Source("CUDA GPU Compute Capability", "https://developer.nvidia.com/cuda-gpus"),
    "smi": Source(
        "nvidia-smi of such GPUs, in public logs; here for seven of them at once",
        "https://github.com/modal-labs/modal-client/pull/2797",
    ),
}
"""By the short name that a kind cites."""
