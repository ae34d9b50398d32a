"""Weights are the sum of the headers of safetensors files, to the byte.

The models are made here by transformers' own classes, small and random, and saved as real
checkpoints are.
"""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from vramscope.exporters.signals.memory.read_model import read_config_file, read_model
from vramscope.exporters.signals.memory.weights import checkpoint_bytes

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SMALL = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 130,
    "max_position_embeddings": 128,
}
MIXTURE = {"num_experts_per_tok": 2, "moe_intermediate_size": 48}
MLA = {
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "num_key_value_heads": 4,
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {"tie_word_embeddings": False}),
    "llama-tied": ("Llama", {"tie_word_embeddings": True}),
    "llama-biases": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "mistral": ("Mistral", {"head_dim": 32}),
    "phi3": ("Phi3", {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}),
    "qwen2": ("Qwen2", {"tie_word_embeddings": True}),
    "qwen3": ("Qwen3", {"head_dim": 32}),
    "gemma2": ("Gemma2", {"head_dim": 32}),
    "gemma3": ("Gemma3Text", {"head_dim": 32}),
    "falcon": ("Falcon", {"multi_query": True, "bias": False, "alibi": False}),
    "falcon-grouped": ("Falcon", {"new_decoder_architecture": True, "num_kv_heads": 2}),
    "opt": ("OPT", {"ffn_dim": 96, "word_embed_proj_dim": 64}),
    "gpt2": ("GPT2", {"n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 128}),
    "mixtral": ("Mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "qwen3-moe": ("Qwen3Moe", {**MIXTURE, "num_experts": 4, "head_dim": 32}),
    "qwen3-moe-mixed": (
        "Qwen3Moe",
        {**MIXTURE, "num_experts": 4, "decoder_sparse_step": 2, "mlp_only_layers": [1]},
    ),
    "gpt-oss": (
        "GptOss",
        {"num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 32, "sliding_window": 16},
    ),
    "deepseek-v2": ("DeepseekV2", {**MLA, **MIXTURE, "q_lora_rank": None}),
    "deepseek-v3": ("DeepseekV3", {**MLA, **MIXTURE, "q_lora_rank": 24}),
    "mamba": ("Mamba", {"state_size": 8, "num_hidden_layers": 3}),
    "mamba2": ("Mamba2", {"state_size": 8, "num_heads": 8, "head_dim": 16, "n_groups": 2}),
    "jamba": (
        "Jamba",
        {"num_experts": 4, "num_hidden_layers": 8, "mamba_dt_rank": 6, "use_mamba_kernels": False},
    ),
    "qwen3-next": (
        "Qwen3Next",
        {
            **MIXTURE,
            "num_experts": 4,
            "head_dim": 32,
            "num_hidden_layers": 4,
            "shared_expert_intermediate_size": 48,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 16,
        },
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_weights_are_the_sum_of_the_headers(name: str, tmp_path: Path) -> None:
    kind, values = CASES[name]
    config_class = getattr(transformers, f"{kind}Config")
    given = {key: value for key, value in SMALL.items() if key in config_class().to_dict()}
    config = config_class(**{**given, **values})
    suffix = "LMHeadModel" if kind == "GPT2" else "ForCausalLM"
    model_class = getattr(transformers, kind.replace("Text", "") + suffix)
    config.architectures = [model_class.__name__]
    model_class(config).to(torch.bfloat16).save_pretrained(tmp_path)
    model, quantization = read_model(read_config_file(tmp_path), name)
    assert checkpoint_bytes(model, quantization) == header_bytes(tmp_path)


def header_bytes(folder: Path) -> int:
    total = 0
    for file in folder.glob("*.safetensors"):
        with file.open("rb") as opened:
            (length,) = struct.unpack("<Q", opened.read(8))
            header = json.loads(opened.read(length))
        for name, tensor in header.items():
            if name != "__metadata__":
                begin, end = tensor["data_offsets"]
                total += end - begin
    return total
