"""Writes a tiny random model whose layers differ in how they cache: ``hybrid_model.py KIND DIR``.

KIND is ``sliding`` (Gemma 3: three layers with a window, one without) or ``mamba`` (LFM2: two
layers with a state, one of attention).
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    Lfm2Config,
    Lfm2ForCausalLM,
)

SIZES = {
    "vocab_size": 300,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
WINDOWED, WHOLE, STATE = "sliding_attention", "full_attention", "conv"
LATER: dict[str, Any] = {"conv_dim": 128, "conv_dim_out": 128, "block_dim": 128}
"""What vLLM reads of an LFM2 and newer configurations call otherwise."""


def main(kind: str, folder: Path) -> None:
    torch.manual_seed(0)
    if kind == "sliding":
        layers = [WINDOWED, WINDOWED, WINDOWED, WHOLE]
        shape = {"head_dim": 32, "sliding_window": 64, "layer_types": layers}
        model = Gemma3ForCausalLM(Gemma3TextConfig(num_hidden_layers=4, **SIZES, **shape))
    else:
        layers = [STATE, WHOLE, STATE]
        model = Lfm2ForCausalLM(Lfm2Config(num_hidden_layers=3, layer_types=layers, **SIZES))
    model.to(torch.float32).save_pretrained(folder)
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | (LATER if kind == "mamba" else {})))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
