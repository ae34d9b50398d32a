"""What vLLM itself builds for a config.json: one model, one tensor-parallel size, no weights.

Builds rank 0's model on the meta device and prints, as JSON in the last line, its parameters, the
KV cache spec of its layers, and the cache groups that the engine would make of them. Runs in the
environment that goldens.py sets.
"""

import argparse
import json
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
import vllm
from gpu_like import EXPERTS_BACKEND, decide_as_on_a_gpu
from no_images import do_without_torchvision
from rank_0 import be_rank_0
from vllm.config import VllmConfig, get_layers_from_vllm_config, set_current_vllm_config
from vllm.engine.arg_utils import EngineArgs
from vllm.model_executor.layers.attention_layer_base import AttentionLayerBase
from vllm.model_executor.model_loader.utils import initialize_model
from vllm.platforms import current_platform
from vllm.v1.attention.backends.utils import resolve_kv_cache_layout
from vllm.v1.core.kv_cache_utils import get_kv_cache_configs

BLOCK_SIZE = 16
POOL_BYTES = 16 << 30
POOL_MAX_MODEL_LEN = 1024
"""So that one request fits the pool, whatever the model."""
LAYOUTS = ["LBNHC", "LBHNC", "BLNHC", "BLHNC"]
"""What the Triton backends offer, most preferred first."""


def main() -> None:
    """Build, print, and leave without vLLM's teardown, which has nothing to tear down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path, help="a config.json, of any name")
    parser.add_argument("--tp", type=int, default=1)
    parser.add_argument("--kv-cache-dtype", default="auto")
    options = parser.parse_args()
    print(json.dumps(build(options.config, options.tp, options.kv_cache_dtype)), flush=True)
    os._exit(0)


def build(config_json: Path, tensor_parallel: int, kv_cache_dtype: str) -> dict[str, Any]:
    """Return the golden variant of a model, for one tensor-parallel size and KV data type."""
    decide_as_on_a_gpu()
    do_without_torchvision()
    with tempfile.TemporaryDirectory() as folder:  # read again while the model is built
        shutil.copy(config_json, Path(folder) / "config.json")
        config = EngineArgs(
            model=folder,
            load_format="dummy",
            skip_tokenizer_init=True,
            enforce_eager=True,
            block_size=BLOCK_SIZE,
            tensor_parallel_size=tensor_parallel,
            kv_cache_dtype=kv_cache_dtype,
            moe_backend=EXPERTS_BACKEND,
        ).create_engine_config()
        with set_current_vllm_config(config):
            be_rank_0(tensor_parallel)
            torch.set_default_dtype(config.model_config.dtype)
            with torch.device("meta"):
                model = initialize_model(config)
            torch.set_default_dtype(torch.float32)
            layers = kv_specs(config)
            current_platform.update_block_size_for_backend(config)
            groups = cache_groups(config)
    return {
        "vllm": vllm.__version__,
        "tp": tensor_parallel,
        "dtype": name_of(config.model_config.dtype),
        "kv_cache_dtype": kv_cache_dtype,
        "quantization": config.model_config.quantization,
        "weight_bytes": sum(map(bytes_of, model.parameters())),
        "buffer_bytes": sum(map(bytes_of, model.buffers())),
        "parameters": collapsed(model.named_parameters()),
        "buffers": collapsed(model.named_buffers()),
        "layers": counted(described(spec) for spec in layers.values()),
        "groups_for_16_gib": groups,
    }


def kv_specs(config: VllmConfig) -> dict[str, Any]:
    """Return the KV cache spec of each layer that has one."""
    layers = get_layers_from_vllm_config(config, AttentionLayerBase)
    specs = {name: layer.get_kv_cache_spec(config) for name, layer in layers.items()}
    return {name: spec for name, spec in specs.items() if spec is not None}


def cache_groups(config: VllmConfig) -> dict[str, Any]:
    """Return what the engine makes of 16 GiB, or why it refuses.

    A hybrid's attention blocks may have grown by then, up to the size of a mamba state.
    """
    config.model_config.max_model_len = min(config.model_config.max_model_len, POOL_MAX_MODEL_LEN)
    specs = kv_specs(config)
    try:
        resolve_kv_cache_layout(config, [LAYOUTS], list(specs.values()))
        [made] = get_kv_cache_configs(config, [specs], [POOL_BYTES])
    except (AssertionError, NotImplementedError, ValueError) as error:
        return {"refused": f"{type(error).__name__}: {error}"}
    return {
        "num_blocks": made.num_blocks,
        "groups": counted(
            {"layers": len(group.layer_names), **described(group.kv_cache_spec)}
            for group in made.kv_cache_groups
        ),
    }


def described(spec: Any) -> dict[str, Any]:
    """Return the fields of a spec that its bytes come from."""
    unpadded = getattr(spec, "unpadded_page_size_bytes", None)
    seen = {
        "kind": type(spec).__name__,
        "block_size": spec.block_size,
        "page_size_bytes": spec.page_size_bytes,
        "page_size_unpadded_bytes": unpadded or getattr(spec, "real_page_size_bytes", None),
    }
    for field in ("sliding_window", "attention_chunk_size", "num_kv_heads", "head_size"):
        seen[field] = getattr(spec, field, None)
    seen["head_size_v"] = getattr(spec, "head_size_v", None)
    seen["dtype"] = name_of(spec.dtype) if hasattr(spec, "dtype") else None
    if hasattr(spec, "shapes"):
        seen["shapes"] = [list(shape) for shape in spec.shapes]
        seen["dtypes"] = [name_of(dtype) for dtype in spec.dtypes]
    return {field: value for field, value in seen.items() if value is not None}


def counted(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the distinct entries in order of first appearance, each with its count."""
    counts = Counter(json.dumps(entry) for entry in entries)
    return [{**json.loads(entry), "count": count} for entry, count in counts.items()]


def collapsed(tensors: Iterable[tuple[str, torch.Tensor]]) -> dict[str, dict[str, Any]]:
    """Return shape, data type and count by name, indices as ``*``.

    A name whose tensors differ in shape or type has an entry for each: ``name``, ``name (2)``.
    """
    counts = Counter(
        (re.sub(r"(?<=\.)\d+(?=\.|$)", "*", name), tuple(tensor.shape), name_of(tensor.dtype))
        for name, tensor in tensors
    )
    entries: dict[str, dict[str, Any]] = {}
    seen: Counter[str] = Counter()
    for (name, shape, dtype), count in counts.items():
        seen[name] += 1
        key = name if seen[name] == 1 else f"{name} ({seen[name]})"
        entries[key] = {"shape": list(shape), "dtype": dtype, "count": count}
    return entries


def bytes_of(tensor: torch.Tensor) -> int:
    """Return the bytes of a tensor's elements."""
    return int(tensor.numel() * tensor.element_size())


def name_of(dtype: torch.dtype) -> str:
    """Return torch.bfloat16 as ``bfloat16``."""
    return str(dtype).removeprefix("torch.")


if __name__ == "__main__":
    main()
