"""Random LoRA adapters in PEFT's format for the tiny model, each with its own answers."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from vramscope.demo.tiny_model import LAYERS, PROJECTIONS

__all__ = ["RANK", "make_adapters"]

RANK = 8
ALPHA = 16
SEED = 100


def make_adapters(folder: Path, count: int) -> dict[str, Path]:
    """Write ``count`` adapters into ``folder`` unless they are there.

    Returns:
        The folder of each by its name: ``ad0``, ``ad1``, ...
    """
    adapters = {f"ad{index}": folder / f"ad{index}" for index in range(count)}
    for index, path in enumerate(adapters.values()):
        if not (path / "adapter_config.json").is_file():
            write_adapter(path, SEED + index)
    return adapters


def write_adapter(folder: Path, seed: int) -> None:
    """Write one adapter; its configuration last, so that a folder without it is incomplete."""
    random = np.random.default_rng(seed)
    tensors = {}
    for layer in range(LAYERS):
        for name, (outputs, inputs) in PROJECTIONS.items():
            prefix = f"base_model.model.model.layers.{layer}.{name}"
            down = random.normal(0, inputs**-0.5, (RANK, inputs))
            # Neither is zero, as a fresh adapter's would be: its answers differ from the base's.
            up = random.normal(0, 0.5 * RANK**-0.5, (outputs, RANK))
            tensors[f"{prefix}.lora_A.weight"] = down.astype(np.float32)
            tensors[f"{prefix}.lora_B.weight"] = up.astype(np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "adapter_model.safetensors")
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "tiny",
        "r": RANK,
        "lora_alpha": ALPHA,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted(name.rpartition(".")[2] for name in PROJECTIONS),
        "inference_mode": True,
    }
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")
