"""A config.json that can't be planned with is one line that names the field."""

import json
from pathlib import Path
from typing import Any

import pytest

from vramscope.exporters.signals.memory.block_layout import block_layout
from vramscope.exporters.signals.memory.cache import AttentionCache
from vramscope.exporters.signals.memory.config_fields import ModelConfigError
from vramscope.exporters.signals.memory.read_model import read_config_file, read_model
from vramscope.exporters.signals.memory.tensor import LayoutError
from vramscope.exporters.signals.memory.weights import Parallelism, rank_weight_bytes

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "max_position_embeddings": 128,
    "torch_dtype": "bfloat16",
}
FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic"}

PACKED = {"quant_method": "compressed-tensors"}
MLP_ONLY = {
    "targets": ["re:.*mlp.*"],
    "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128},
}


def read(**changes: Any) -> Any:
    return read_model({**LLAMA, **changes}, "m/config.json")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_size": None}, r"no hidden_size \(or n_embd, d_model\): want it there"),
        ({"hidden_size": -4}, "hidden_size is -4: want a whole number from 1 to"),
        ({"hidden_size": 0}, "hidden_size is 0: want a whole number"),
        ({"hidden_size": 64.0}, "hidden_size is 64.0: want a whole number"),
        ({"hidden_size": True}, "hidden_size is True: want a whole number"),
        ({"hidden_size": "64"}, "hidden_size is '64': want a whole number"),
        ({"vocab_size": 10**30}, r"vocab_size is 10+: want a whole number"),
        (
            {"num_hidden_layers": 10**9},
            "num_hidden_layers is 1000000000: want a whole number from 1 to 10,000",
        ),
        (
            {"num_attention_heads": 5, "num_key_value_heads": 5},
            "heads is 5: want a d",
        ),
        ({"num_key_value_heads": 3}, "num_key_value_heads is 3: want a divisor of the 4 heads"),
        ({"torch_dtype": "int7"}, "torch_dtype is 'int7': want one of bfloat16, float16, float32"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings is 'no': want true or false"),
        ({"architectures": []}, "no architectures: want it there"),
        ({"architectures": "Llama"}, "architectures is 'Llama': want a list of str"),
        ({"architectures": ["LlamaForCausalML"]}, "nearest is LlamaForCausalLM; "),
        ({"layer_types": ["full_attention"]}, "layer_types is '1 kinds': want one for each of 2"),
        ({"layer_types": ["full_attention", "x"]}, "layer_types is 'x': want sliding_attention or"),
        (
            {"layer_types": ["full_attention", "sliding_attention"]},
            "no sliding_window: want it there",
        ),
        ({"quantization_config": 4}, "quantization_config is 4: want an object"),
        ({"quantization_config": {}}, "quantization_config: no quant_method"),
        ({"quantization_config": {"quant_method": "hqq"}}, "quant_method is 'hqq': want one known"),
        (
            {"quantization_config": {**FP8, "weight_block_size": [128]}},
            r"weight_block_size is \[128\]: want two whole numbers",
        ),
        (
            {"quantization_config": {**FP8, "modules_to_not_convert": ["re:("]}},
            r"ignore is 're:\(': want a regular expression after re: \(missing",
        ),
        (
            {"quantization_config": {**PACKED, "config_groups": {"group_0": MLP_ONLY}}},
            "group_0: targets is .*mlp.*: want .'Linear'.: some matrices only are not known",
        ),
        ({"quantization_config": {"quant_method": "awq", "bits": 3, "group_size": 8}}, "bits is 3"),
    ],
)
def test_bad_field_is_named_with_what_is_wanted(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelConfigError, match=words) as caught:
        read(**changes)
    assert str(caught.value).startswith("m/config.json: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not JSON"),
        (b"\x7fELF\x00\xff", "not JSON"),
        (b"[1]", "list: want an object"),
        (b"[" * 200_000, "not JSON"),
        (b"{" + b" " * (17 << 20) + b"}", "over 16,777,216 bytes"),
    ],
)
def test_file_that_is_no_config_is_one_line(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "config.json").write_bytes(data)
    with pytest.raises(ModelConfigError, match=words) as caught:
        read_config_file(tmp_path)
    assert str(tmp_path / "config.json") in str(caught.value)


def test_folder_without_a_config_says_what_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(ModelConfigError, match=r"No such file.*want a model's folder"):
        read_config_file(tmp_path)


def test_ranks_that_do_not_divide_name_the_field() -> None:
    model, _ = read()
    with pytest.raises(LayoutError, match="num_attention_heads is 4: can't be split over 3 ranks"):
        rank_weight_bytes(model, None, Parallelism(3))


def test_more_stages_than_layers_name_the_field() -> None:
    model, _ = read()
    with pytest.raises(LayoutError, match="num_hidden_layers is 2: can't be split over 3 stages"):
        rank_weight_bytes(model, None, Parallelism(1, 3))


def test_stage_that_keeps_nothing_while_others_do_is_refused() -> None:
    layers = [AttentionCache(1, 8, 8), AttentionCache(1, 8, 8), None]
    with pytest.raises(LayoutError, match="layers 2 to 2 keep nothing of a request: vLLM can't"):
        block_layout(layers, 16, 1, 2, 2, range(2, 3))


def test_tower_of_any_depth_is_no_work() -> None:
    vision = {"hidden_size": 64, "num_heads": 4, "intermediate_size": 96, "patch_size": 14}
    with pytest.raises(ModelConfigError, match="vision_config: depth is 1000000000: want a whole"):
        read(
            architectures=["Qwen2_5_VLForConditionalGeneration"],
            vision_config={**vision, "depth": 10**9},
        )


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        (["full_attention"], "layer_types is '1 kinds': want one for each of 2 layers"),
        (["mamba", "full_attention"], "'mamba': want full_attention or linear_attention"),
    ],
)
def test_kinds_of_a_hybrid_are_checked_as_windows_are(kinds: list[str], words: str) -> None:
    linear = ("num_key_heads", "key_head_dim", "num_value_heads", "value_head_dim")
    sizes = {f"linear_{name}": 8 for name in (*linear, "conv_kernel_dim")}
    with pytest.raises(ModelConfigError, match=words):
        read(architectures=["Qwen3NextForCausalLM"], layer_types=kinds, **sizes)


def test_fields_that_are_not_known_are_told() -> None:
    model, _ = read(new_memory_thing=7, rms_norm_eps=1e-5, bos_token_id=1)
    assert model.not_read == ("new_memory_thing",)


def test_config_of_a_file_is_read_from_the_file_itself_too(tmp_path: Path) -> None:
    file = tmp_path / "any.json"
    file.write_text(json.dumps(LLAMA))
    assert read_config_file(file) == LLAMA
