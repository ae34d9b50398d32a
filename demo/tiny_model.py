"""A random Llama of two layers with a byte-level tokenizer: real to vLLM, and no download.

Written file by file rather than through transformers, whose import alone takes longer than the
rest; the weights are the same on every machine.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

__all__ = ["CONTEXT_TOKENS", "LAYERS", "PROJECTIONS", "make_tiny_model"]

LAYERS = 2
HIDDEN = 128
INTERMEDIATE = 256
HEADS = 4
KV_HEADS = 2
HEAD_DIM = HIDDEN // HEADS
CONTEXT_TOKENS = 2048
VOCABULARY = 300
BOS, EOS = "<s>", "</s>"
SEED = 20240

PROJECTIONS = {
    "self_attn.q_proj": (HEADS * HEAD_DIM, HIDDEN),
    "self_attn.k_proj": (KV_HEADS * HEAD_DIM, HIDDEN),
    "self_attn.v_proj": (KV_HEADS * HEAD_DIM, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HEADS * HEAD_DIM),
    "mlp.gate_proj": (INTERMEDIATE, HIDDEN),
    "mlp.up_proj": (INTERMEDIATE, HIDDEN),
    "mlp.down_proj": (HIDDEN, INTERMEDIATE),
}
"""Outputs and inputs of a layer's linear maps: what an adapter can change."""

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
CORPUS = "the quick brown fox jumps over the lazy dog; user assistant system hello world"


def make_tiny_model(folder: Path) -> Path:
    """Write the model into ``folder`` unless it is there; return ``folder``.

    The configuration is written last: a folder without it is incomplete and made again.
    """
    if not (folder / "config.json").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        vocabulary = write_tokenizer(folder)
        save_file(weights(vocabulary), folder / "model.safetensors", metadata={"format": "pt"})
        write_json(folder / "config.json", config(vocabulary))
    return folder


def write_tokenizer(folder: Path) -> int:
    """Write a byte-level BPE: every text has tokens, about one a character. Return its size."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[BOS, EOS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([CORPUS], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": BOS,
            "eos_token": EOS,
            "model_max_length": CONTEXT_TOKENS,
            "clean_up_tokenization_spaces": False,
            "chat_template": CHAT_TEMPLATE,
        },
    )
    size: int = tokenizer.get_vocab_size()
    return size


def config(vocabulary: int) -> dict[str, Any]:
    """Return the model's configuration in Hugging Face's form."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": vocabulary,
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "hidden_act": "silu",
        "max_position_embeddings": CONTEXT_TOKENS,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "dtype": "float32",
    }


def weights(vocabulary: int) -> dict[str, np.ndarray[Any, np.dtype[np.float32]]]:
    """Return random weights of a scale at which the most likely token is a clear one."""
    random = np.random.default_rng(SEED)

    def matrix(outputs: int, inputs: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        return random.normal(0, inputs**-0.5, (outputs, inputs)).astype(np.float32)

    ones = np.ones(HIDDEN, np.float32)
    tensors = {
        "model.embed_tokens.weight": random.normal(0, 1, (vocabulary, HIDDEN)).astype(np.float32),
        "model.norm.weight": ones,
        "lm_head.weight": 3 * matrix(vocabulary, HIDDEN),
    }
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}"
        tensors[f"{prefix}.input_layernorm.weight"] = ones
        tensors[f"{prefix}.post_attention_layernorm.weight"] = ones
        for name, (outputs, inputs) in PROJECTIONS.items():
            tensors[f"{prefix}.{name}.weight"] = matrix(outputs, inputs)
    return tensors


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write ``value`` as a person would want to read it."""
    path.write_text(json.dumps(value, indent=2) + "\n")
