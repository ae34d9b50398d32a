"""Who this process is: the header of its record, from vLLM's configuration."""

import os
import re
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

__all__ = ["engine_header", "engine_id", "gpu_uuids", "record_name", "worker_header"]

_WHOLE_UUID = re.compile(r"(GPU|MIG)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_OLD_MIG_UUID = re.compile(r"MIG-GPU-[0-9a-f-]{36}/\d+/\d+")


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
        "gpu_uuids": gpu_uuids(_ranks(config)),
        "max_model_len": config.model_config.max_model_len,
        "kv_connector": getattr(getattr(config, "kv_transfer_config", None), "kv_connector", None),
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


def worker_header(config: Any, rank: int, local_rank: int) -> dict[str, Any]:
    """Describe a worker: its place among the engine's ranks, and its GPU.

    Args:
        config: vLLM's.
        rank: over tensor and pipeline parallelism; the tensor rank changes fastest.
        local_rank: on its host.
    """
    parallel = config.parallel_config
    tensor_ranks = int(parallel.tensor_parallel_size)
    a_stage = tensor_ranks * int(getattr(parallel, "prefill_context_parallel_size", 1))
    return {
        **_common(config, "worker"),
        "rank": rank,
        "tp_rank": rank % tensor_ranks,
        "pp_rank": rank // a_stage,
        "local_rank": local_rank,
        "gpu_uuids": gpu_uuids(1),
    }


def gpu_uuids(
    ranks: int, environment: Mapping[str, str] = os.environ, torch: Any = None
) -> list[str]:
    """Return the UUIDs of the GPUs that this process's ranks work on, in rank order.

    A process that runs a worker works on the device it has made current. An EngineCore whose
    workers are other processes has initialised no GPU, and must not: it would take memory on
    it. There ``CUDA_VISIBLE_DEVICES`` tells, if it names as many UUIDs as there are ranks.

    Args:
        ranks: workers that this process runs or starts.
        environment: of this process.
        torch: the module; None takes it if the process has imported it.

    Returns:
        ``GPU-...`` or ``MIG-...`` of each rank; empty where that is not known, as on a CPU.
    """
    visible = environment.get("CUDA_VISIBLE_DEVICES", "").replace(" ", "").split(",")
    try:
        cuda = getattr(torch or sys.modules.get("torch"), "cuda", None)
        if cuda is not None and cuda.is_initialized():
            device = int(cuda.current_device())
            # Of a MIG instance CUDA may give the whole GPU's UUID; it shows one instance only.
            if _is_uuid(visible[0]) and visible[0].startswith("MIG-"):
                return visible[:1]
            uuid = f"GPU-{str(cuda.get_device_properties(device).uuid).lower()}"
            return [uuid] if _is_uuid(uuid) else []
    except Exception:  # noqa: BLE001  # a torch without one of these: then it is not known
        return []
    return visible if len(visible) == ranks and all(map(_is_uuid, visible)) else []


def _is_uuid(name: str) -> bool:
    """Whether CUDA's name for a device is a whole UUID: it takes indexes and prefixes too."""
    return bool(_WHOLE_UUID.fullmatch(name) or _OLD_MIG_UUID.fullmatch(name))


def _ranks(config: Any) -> int:
    parallel = config.parallel_config
    return int(parallel.tensor_parallel_size) * int(parallel.pipeline_parallel_size)


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
