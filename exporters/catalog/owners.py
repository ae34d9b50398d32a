"""Metrics of who uses which GPU: what joins the series of GPUs to those of their users."""

from vramscope.exporters.catalog.metric import Metric

__all__ = ["OWNER_METRICS"]

ENGINE_GPU_INFO = Metric(
    "vramscope_engine_gpu_info",
    "gauge",
    "",
    "1 for each GPU or MIG instance that an engine runs on, with the rank of its worker there "
    "where that is known; join engines to GPUs by it.",
    ("engine", "dp_rank", "uuid", "rank"),
)
GPU_USER_INFO = Metric(
    "vramscope_gpu_user_info",
    "gauge",
    "",
    "1 for each container or HPC job that holds a GPU or MIG instance, each of those that share "
    "one included.",
    ("gpu", "uuid", "hostname", "pod", "namespace", "container", "hpc_job"),
)

OWNER_METRICS: tuple[Metric, ...] = (ENGINE_GPU_INFO, GPU_USER_INFO)
