"""Numbers that one can check on paper."""

from typing import Any

import pytest

from vramscope.exporters.signals.memory.block_layout import LayoutUnknownError, block_layout
from vramscope.exporters.signals.memory.cache import AttentionCache, State, StateCache
from vramscope.exporters.signals.memory.kv import CacheGroup, request_blocks, token_bytes
from vramscope.exporters.signals.memory.lora import (
    NoAdaptersError,
    adapter_bytes,
    slot_bytes,
    target_names,
)
from vramscope.exporters.signals.memory.quantization import Quantization
from vramscope.exporters.signals.memory.read_model import read_model
from vramscope.exporters.signals.memory.weights import Parallelism, rank_weight_bytes

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": 64,
    "max_position_embeddings": 128,
}
# q and o 8 x 8, k and v 4 x 8, gate, up and down 16 x 8.
MATRICES = 2 * 64 + 2 * 32 + 3 * 128
NORMS = 3 * 8
TABLES = 2 * 64 * 8


def read(**changes: Any) -> Any:
    return read_model({**LLAMA, **changes}, "config.json")[0]


def test_weights_of_a_tiny_llama() -> None:
    assert rank_weight_bytes(read()) == 2 * (MATRICES + NORMS + TABLES)
    assert rank_weight_bytes(read(tie_word_embeddings=True)) == 2 * (MATRICES + NORMS + TABLES // 2)


def test_a_vocabulary_is_padded_to_64_and_a_second_rank_holds_the_only_kv_head_too() -> None:
    split = rank_weight_bytes(read(vocab_size=65), None, Parallelism(2))
    assert split == 2 * ((MATRICES - 64) // 2 + 64 + NORMS + 2 * 128 * 8 // 2)


def test_eight_bits_halve_the_matrices_and_add_a_scale_a_row() -> None:
    by_row = Quantization("fp8", 8, by_row=True)
    rows = 8 + 4 + 4 + 8 + 16 + 16 + 8
    assert rank_weight_bytes(read(), by_row) == MATRICES + 4 * rows + 2 * (NORMS + TABLES)


@pytest.mark.parametrize(
    "name",
    ["model.layers.0.mlp", "re:.*mlp.*", r"re:model\.layers\.0\.mlp", "model.layers.*.mlp"],
)
def test_ignored_modules_stay_as_they_are(name: str) -> None:
    scheme = Quantization("fp8", 8, ignored=(name,))
    attention = 2 * 64 + 2 * 32
    want = attention + 4 * 4 + 2 * (3 * 128 + NORMS + TABLES)
    assert rank_weight_bytes(read(), scheme) == want


@pytest.mark.parametrize("name", ["re:mlp.*", "re:layers.*", "ml", "lm_head"])
def test_names_that_are_no_module_ignore_none(name: str) -> None:
    scheme = Quantization("fp8", 8, ignored=(name,))
    assert rank_weight_bytes(read(), scheme) == rank_weight_bytes(read(), Quantization("fp8", 8))


def test_channels_of_a_mamba_are_the_hidden_size_expanded() -> None:
    sizes = {"state_size": 16, "conv_kernel": 4, "intermediate_size": None, "expand": 3}
    state = read(architectures=["MambaForCausalLM"], **sizes).layers[0].cache
    assert state.bytes(1, 2) == 3 * 8 * (3 + 16) * 2


def test_four_bits_in_groups_with_zero_points() -> None:
    scheme = Quantization("awq", 4, group=4, zero_points=True)
    # 8 rows of 8: 32 bytes; two groups a row, each a 16-bit scale and a 4-bit zero point.
    assert scheme.matrix_bytes(8, 8, 16) == 32 + 8 * 2 * 2 + 8 * 2 // 2


def test_tokens_of_latents_are_the_same_on_every_rank() -> None:
    groups = [CacheGroup(AttentionCache(1, 576, 0, latent=True), 61)]
    assert token_bytes(groups, 1, 2) == token_bytes(groups, 8, 2) == 61 * 576 * 2


def test_kv_heads_are_shared_until_a_rank_has_one() -> None:
    groups = [CacheGroup(AttentionCache(4, 128, 128), 1)]
    assert [token_bytes(groups, ranks, 2) for ranks in (1, 2, 4, 8)] == [2048, 1024, 512, 512]


def test_a_window_bounds_a_request_and_a_chunk_does() -> None:
    window = AttentionCache(1, 8, 8, window=32)
    assert [request_blocks(window, n, 16) for n in (0, 1, 16, 17, 48, 49, 10**6)] == [
        *(0, 1, 1, 2, 3, 3, 3)
    ]
    chunk = AttentionCache(1, 8, 8, chunk=64)
    assert [request_blocks(chunk, n, 16) for n in (63, 64, 65, 10**6)] == [4, 4, 5, 5]


def test_layers_are_dealt_into_groups_of_the_rarest_kind() -> None:
    wide, all_tokens = AttentionCache(4, 256, 256, window=1024), AttentionCache(4, 256, 256)
    layout = block_layout([wide] * 29 + [all_tokens] * 5, 16, 1, 2, 2)
    assert layout is not None
    assert (layout.tables, layout.padding_layers) == (((wide, 6), (all_tokens, 1)), 1)
    assert layout.block_bytes == 5 * 16 * 4 * 512 * 2


def test_a_page_is_made_to_hold_a_state() -> None:
    state = StateCache((State((8192, 3)), State((8192, 16))), "mamba1")
    attending = AttentionCache(8, 128, 128)
    layout = block_layout([state] * 28 + [attending] * 4, 16, 1, 2, 2)
    assert layout is not None
    assert (layout.block_size, layout.raised) == (80, True)


def test_pages_of_several_sizes_are_refused() -> None:
    layers = [AttentionCache(n, 128, 128) for n in (1, 3)]
    with pytest.raises(LayoutUnknownError, match="2 sizes of a token"):
        block_layout(layers, 16, 1, 2, 2)


def test_nothing_kept_is_no_layout() -> None:
    assert block_layout([], 16, 1, 2, 2) is None


def test_an_adapter_is_two_matrices_a_target() -> None:
    model = read()
    assert target_names(model) == (
        *("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
    )
    assert adapter_bytes(model, 4, ["q_proj", "v_proj"]) == 2 * 4 * ((8 + 8) + (4 + 8))


def test_a_slot_has_room_for_every_target_and_the_embeddings() -> None:
    targets = (8 + 8) * 2 + (4 + 8) * 2 + (16 + 8) * 3
    assert slot_bytes(read(), 4) == 2 * 4 * (targets + 2 * (64 + 8))


def test_architecture_that_vllm_serves_no_adapters_with_is_refused() -> None:
    gpt2 = {"architectures": ["GPT2LMHeadModel"], "n_embd": 8, "n_layer": 1, "n_head": 2}
    model, _ = read_model({**gpt2, "vocab_size": 64}, "config.json")
    with pytest.raises(NoAdaptersError, match="GPT2LMHeadModel: vLLM serves no LoRA"):
        slot_bytes(model, 8)
