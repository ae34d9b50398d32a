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
OPT = {"ffn_dim": 96, "word_embed_proj_dim": 64}
GPT2 = {"n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 128}
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
    "falcon-40b's": ("Falcon", {"new_decoder_architecture": True, "num_ln_in_parallel_attn": 1}),
    "falcon-rw's": (
        "Falcon",
        {"multi_query": False, "alibi": True, "bias": True, "parallel_attn": False},
    ),
    "opt": ("OPT", OPT),
    "opt-norms-after": ("OPT", {**OPT, "do_layer_norm_before": False}),
    "opt-norms-unscaled": ("OPT", {**OPT, "layer_norm_elementwise_affine": False}),
    "opt-no-biases": ("OPT", {**OPT, "enable_bias": False}),
    "gpt2": ("GPT2", GPT2),
    "gpt2-untied": ("GPT2", {**GPT2, "tie_word_embeddings": False, "n_inner": 80}),
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
    "deepseek-v2-queries": ("DeepseekV2", {**MLA, **MIXTURE, "q_lora_rank": 24}),
    "llama4": (
        "Llama4Text",
        {"num_local_experts": 4, "intermediate_size_mlp": 128, "interleave_moe_layer_step": 2},
    ),
    "mamba": ("Mamba", {"state_size": 8}),
    "mamba-biases": ("Mamba", {"state_size": 8, "use_bias": True, "use_conv_bias": False}),
    "mamba-untied": ("Mamba", {"state_size": 8, "tie_word_embeddings": False}),
    "falcon-mamba": ("FalconMamba", {"state_size": 8}),
    "mamba2": ("Mamba2", {"state_size": 8, "num_heads": 8, "head_dim": 16, "n_groups": 2}),
    "jamba": (
        "Jamba",
        {"num_experts": 4, "num_hidden_layers": 8, "mamba_dt_rank": 6, "use_mamba_kernels": False},
    ),
    "jamba-one-expert": (
        "Jamba",
        {"num_experts": 1, "num_hidden_layers": 8, "mamba_dt_rank": 6, "mamba_proj_bias": True},
    ),
    "nemotron-h": (
        "NemotronH",
        {
            "num_hidden_layers": 5,
            "hybrid_override_pattern": "M-M*-",
            "mamba_num_heads": 8,
            "mamba_head_dim": 16,
            "n_groups": 2,
            "ssm_state_size": 8,
            "head_dim": 32,
        },
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
    fields = {"num_hidden_layers", *config_class().to_dict()}
    config = config_class(**{**{key: SMALL[key] for key in SMALL if key in fields}, **values})
    suffix = "LMHeadModel" if kind == "GPT2" else "ForCausalLM"
    made = getattr(transformers, kind.replace("Text", "") + suffix)(config)
    assert_sum(made, tmp_path, values if kind == "NemotronH" else {})


def test_weights_of_a_model_with_a_tower_are_the_sum_of_the_headers(tmp_path: Path) -> None:
    vision = {
        "depth": 2,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_heads": 4,
        "out_hidden_size": 64,
    }
    text = {**SMALL, "rope_parameters": {"rope_type": "default", "mrope_section": [2, 3, 3]}}
    config = transformers.Qwen2_5_VLConfig(text_config=text, vision_config=vision)
    assert_sum(transformers.Qwen2_5_VLForConditionalGeneration(config), tmp_path, {})


def assert_sum(made: Any, folder: Path, published: dict[str, Any]) -> None:
    """Save a model, with the fields that its publisher writes and transformers does not."""
    made.config.architectures = [type(made).__name__]
    made.to(torch.bfloat16).save_pretrained(folder)
    values = {**read_config_file(folder), **published}
    model, quantization = read_model(values, str(folder))
    assert checkpoint_bytes(model, quantization) == header_bytes(folder)


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
