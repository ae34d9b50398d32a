"""vLLM's own names, by what we take from them; read in the sources of 0.13 to 0.33.

Sample names as they are on the page: a counter has ``_total``.
"""

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["CACHE_CONFIG", "COUNTERS", "EXPECTED", "FINISHED", "GAUGES", "LORA_INFO", "Native"]


class Native(NamedTuple):
    """One name on the page.

    Attributes:
        name: of the sample.
        labels: label values that the sample must have, beside the engine's.
    """

    name: str
    labels: Mapping[str, str] = {}


GAUGES: dict[str, tuple[Native, ...]] = {
    "running": (Native("vllm:num_requests_running"),),
    "waiting": (Native("vllm:num_requests_waiting"),),
    "kv_usage_ratio": (Native("vllm:kv_cache_usage_perc"), Native("vllm:gpu_cache_usage_perc")),
    "offload_pinned_ratio": (Native("vllm:kv_offload_cpu_cache_usage_perc"),),
}
"""By field of ``NativeSample``; newest name first, and the first that the page has is taken."""

COUNTERS: dict[str, tuple[Native, ...]] = {
    "generated_tokens": (Native("vllm:generation_tokens_total"),),
    "prompt_tokens": (Native("vllm:prompt_tokens_total"),),
    "prefix_hit_tokens": (
        Native("vllm:prefix_cache_hits_total"),
        Native("vllm:gpu_prefix_cache_hits_total"),
    ),
    "preemptions": (Native("vllm:num_preemptions_total"),),
    "external_queried_tokens": (Native("vllm:external_prefix_cache_queries_total"),),
    "external_hit_tokens": (Native("vllm:external_prefix_cache_hits_total"),),
    # 0.24 and later, then 0.16 to 0.23. All of an engine with the OffloadingConnector only.
    "offload_load_bytes": (
        Native("vllm:kv_offload_load_bytes_total"),
        Native("vllm:kv_offload_total_bytes_total", {"transfer_type": "CPU_to_GPU"}),
    ),
    "offload_store_bytes": (
        Native("vllm:kv_offload_store_bytes_total"),
        Native("vllm:kv_offload_total_bytes_total", {"transfer_type": "GPU_to_CPU"}),
    ),
    "offload_load_seconds": (
        Native("vllm:kv_offload_load_time_total"),
        Native("vllm:kv_offload_total_time_total", {"transfer_type": "CPU_to_GPU"}),
    ),
    "offload_store_seconds": (
        Native("vllm:kv_offload_store_time_total"),
        Native("vllm:kv_offload_total_time_total", {"transfer_type": "GPU_to_CPU"}),
    ),
    "offload_refused_full": (Native("vllm:kv_offload_allocation_failure_total"),),
}
"""Likewise; what has more labels is summed over them."""

FINISHED = "vllm:request_success_total"
CACHE_CONFIG = "vllm:cache_config_info"
LORA_INFO = "vllm:lora_requests_info"

EXPECTED = {
    **{field: GAUGES[field][0].name for field in ("running", "waiting", "kv_usage_ratio")},
    **{
        field: COUNTERS[field][0].name
        for field in ("generated_tokens", "prompt_tokens", "prefix_hit_tokens", "preemptions")
    },
    "finished": FINISHED,
    "block_size": CACHE_CONFIG,
}
"""What each engine's page has, by field: one that lacks a name was made by another vLLM."""
