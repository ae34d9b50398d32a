"""Numbers of published models that one can check on paper, or that their makers state."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from vramscope.exporters.signals.memory.block_layout import BlockLayout, block_layout
from vramscope.exporters.signals.memory.budget import EngineShape, budget
from vramscope.exporters.signals.memory.cache import StateCache
from vramscope.exporters.signals.memory.kv import (
    CacheGroup,
    cache_groups,
    request_bytes,
    token_bytes,
)
from vramscope.exporters.signals.memory.lora import adapter_bytes
from vramscope.exporters.signals.memory.model import Model
from vramscope.exporters.signals.memory.quantization import Quantization
from vramscope.exporters.signals.memory.read_model import read_config_file, read_model
from vramscope.exporters.signals.memory.tensor import LayoutError
from vramscope.exporters.signals.memory.weights import (
    Parallelism,
    checkpoint_bytes,
    rank_weight_bytes,
    stage_layers,
)

MODELS = Path(__file__).parent / "models"


@dataclass(frozen=True)
class Published:
    model: Model
    quantization: Quantization | None

    @property
    def groups(self) -> tuple[CacheGroup, ...]:
        return cache_groups([layer.cache for layer in self.model.layers])

    def layout(self, stage: range | None = None) -> BlockLayout:
        found = block_layout([layer.cache for layer in self.model.layers], 16, 1, 2, 2, stage)
        assert found is not None
        return found


def read(name: str) -> Published:
    return Published(*read_model(read_config_file(MODELS / f"{name}.json"), name))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("llama3-8b", 8_030_261_248),
        ("llama3-70b", 70_553_706_496),
        ("llama32-1b", 1_235_814_400),  # tied
        ("mistral-7b-v01", 7_241_732_096),
        ("mixtral-8x7b", 46_702_792_704),
        ("qwen25-7b", 7_615_616_512),
        ("qwen3-30b-a3b", 30_532_122_624),
        ("gemma2-9b", 9_241_705_984),
        ("gpt2", 124_439_808),
        ("deepseek-v2-lite", 15_706_484_224),
    ],
)
def test_parameters_are_as_many_as_the_makers_count(name: str, parameters: int) -> None:
    model = read(name).model
    assert checkpoint_bytes(model) * 8 == parameters * model.checkpoint_bits


def test_llama_3_8b_on_paper() -> None:
    llama = read("llama3-8b")
    assert token_bytes(llama.groups, 1, 2) == 32 * 2 * 8 * 128 * 2 == 131_072
    assert round(rank_weight_bytes(llama.model) / 1e9, 2) == 16.06
    # Every layer: q and o 4,096 + 4,096, k and v 4,096 + 1,024, three of 4,096 + 14,336; 16 bits.
    assert adapter_bytes(llama.model, 16) == 32 * 16 * 2 * (2 * 8192 + 2 * 5120 + 3 * 18432)
    assert llama.layout().block_bytes == 2 << 20
    assert llama.layout().request_blocks(8192) == 512


def test_more_ranks_than_kv_heads_save_no_keys_and_values() -> None:
    llama = read("llama3-8b")
    at_8, at_16 = (token_bytes(llama.groups, ranks, 2) for ranks in (8, 16))
    assert at_8 == at_16 == 131_072 // 8


def test_ranks_that_the_heads_do_not_divide_by_are_refused() -> None:
    with pytest.raises(LayoutError, match="num_attention_heads is 28: can't be split over 8 ranks"):
        rank_weight_bytes(read("qwen25-7b").model, None, Parallelism(8))


def test_latents_of_deepseek_v3_are_576_elements_a_layer_on_every_rank() -> None:
    groups = read("deepseek-v3").groups
    assert [token_bytes(groups, ranks, 2) for ranks in (1, 8)] == [61 * 576 * 2] * 2


def test_windows_of_gemma_3_stop_growing_and_full_layers_do_not() -> None:
    groups = read("gemma3-4b").groups
    layer = 2 * 4 * 256 * 2 * 16  # bytes of a block of 16 tokens
    window = 29 * 65 * layer  # 1,024 tokens of a window rarely begin at a block's edge
    for tokens in (4096, 65_536):
        assert request_bytes(groups, tokens, 16, 1, 2, 2) == window + 5 * tokens // 16 * layer


def test_blocks_of_jamba_are_raised_until_one_holds_a_state() -> None:
    jamba = read("jamba-mini")
    state = 8192 * (3 + 16) * 2
    [held] = {g.layer for g in jamba.groups if isinstance(g.layer, StateCache)}
    assert held.bytes(1, 2) == state
    layout = jamba.layout()
    assert layout.raised
    assert layout.block_size == -(-state // (16 * 4096)) * 16 == 80  # 4,096 bytes a token
    # 7 groups of 4 states and one of 4 layers that attend.
    assert layout.block_bytes == 4 * 80 * 4096
    assert layout.request_blocks(80) == 7 + 1
    assert layout.request_blocks(81) == 7 * 2 + 2  # the state at the block's edge stays


def test_stages_of_gemma_3_share_its_seven_groups() -> None:
    gemma = read("gemma3-4b")
    stages = [gemma.layout(stage) for stage in stage_layers(34, 2)]
    assert [sum(count for _, count in one.tables) for one in stages] == [7, 7]
    # Each stage has three layers of some group of five.
    assert [one.block_bytes for one in stages] == [3 * 16 * 2 * 4 * 256 * 2] * 2
    shape = EngineShape(parallelism=Parallelism(1, 2))
    assert budget(gemma.model, None, shape, 80 << 30).layout in stages


def test_attention_that_gpt_oss_does_not_quantise_stays_16_bit() -> None:
    quantised, whole = read("gpt-oss-20b"), read("gpt-oss-20b-bf16")
    experts = 24 * 32 * 3 * 2880 * 2880
    saved = checkpoint_bytes(whole.model) - checkpoint_bytes(
        quantised.model, quantised.quantization
    )
    assert saved == experts * 2 - experts // 2 - experts // 32  # 4 bits, and 8 for 32 of them
