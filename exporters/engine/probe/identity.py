"""Who this process is: the header of its record, from vLLM's configuration."""

import os
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

__all__ = ["engine_header", "engine_id", "record_name", "worker_header"]


def engine_id(config: Any) -> str:
    """Return the engine's stable id: ``$VRAMSCOPE_ENGINE``, else model and vLLM's instance."""
    named = os.environ.get("VRAMSCOPE_ENGINE")
    if named:
        return named
    return f"{PurePath(config.model_config.model).name}-{config.instance_id}"


def record_name(config: Any, role: str, rank: int = 0) -> str:
    """Return the name of this process's record, without pid and ending."""
    return f"{engine_id(config)}.dp{dp_rank(config)}.{role}{rank}"


def dp_rank(config: Any) -> int:
    """Return the data-parallel rank."""
    parallel = config.parallel_config
    # Ranks that vLLM runs as independent engines all have rank 0; their index tells them apart.
    index = getattr(parallel, "data_parallel_index", None)
    return int(parallel.data_parallel_rank if index is None else index)


def engine_header(
    config: Any, kv_config: Any, pools: Sequence[Any], managers: Any
) -> dict[str, Any]:
    """Describe an EngineCore: model, ranks, KV groups, blocks, bytes per block, LoRA slots."""
    tensors = getattr(kv_config, "kv_cache_tensors", None) or ()
    kv_bytes = sum(tensor.size for tensor in tensors)
    return {
        **_common(config, "engine"),
        "max_model_len": config.model_config.max_model_len,
        "pools": [{"blocks": pool.num_gpu_blocks - 1} for pool in pools],
        "groups": [
            {
                "group": manager.kv_cache_group_id,
                "pool": pools.index(manager.block_pool),
                "kind": type(manager.kv_cache_spec).__name__,
                "block_size": manager.block_size,
            }
            for manager in managers
        ],
        "bytes_per_block": kv_bytes // pools[0].num_gpu_blocks if pools else 0,
    }


def worker_header(config: Any, rank: int) -> dict[str, Any]:
    """Describe a worker: the rank whose adapters this record follows."""
    return {**_common(config, "worker"), "rank": rank}


def _common(config: Any, role: str) -> dict[str, Any]:
    parallel, lora = config.parallel_config, config.lora_config
    served = config.model_config.served_model_name
    return {
        "role": role,
        "engine": engine_id(config),
        "model": served[0] if isinstance(served, list) else str(served),
        "dp_rank": dp_rank(config),
        "tensor_parallel": parallel.tensor_parallel_size,
        "pipeline_parallel": parallel.pipeline_parallel_size,
        "gpu_slots": lora.max_loras if lora else 0,
        "cpu_slots": (lora.max_cpu_loras or lora.max_loras) if lora else 0,
        "vllm_version": str(getattr(sys.modules.get("vllm"), "__version__", "unknown")),
        "hostname": socket.gethostname(),
        "pid": os.getpid(),
        "started_unix_s": time.time(),
    }
