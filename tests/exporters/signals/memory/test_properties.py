"""What holds for every model, whatever its dimensions."""

from dataclasses import replace
from typing import Any

from hypothesis import assume, given, reject
from hypothesis import strategies as st

from vramscope.exporters.signals.memory.block_layout import block_layout
from vramscope.exporters.signals.memory.budget import EngineShape, budget
from vramscope.exporters.signals.memory.kv import cache_groups, request_bytes
from vramscope.exporters.signals.memory.lora import slot_bytes
from vramscope.exporters.signals.memory.model import Model
from vramscope.exporters.signals.memory.quantization import Quantization
from vramscope.exporters.signals.memory.read_model import read_model
from vramscope.exporters.signals.memory.tensor import LayoutError
from vramscope.exporters.signals.memory.weights import (
    Parallelism,
    rank_weight_bytes,
    stage_layers,
)

GIB = 1024**3
SCHEMES = (
    None,
    Quantization("fp8", 8, by_row=True),
    Quantization("awq", 4, group=64, zero_points=True),
)
"""Ever less precise."""


@st.composite
def configs(draw: Any) -> dict[str, Any]:
    """Draw a Llama, a mixture, a model with windows, latents or states."""
    kv_heads = draw(st.sampled_from((1, 2, 4, 8)))
    heads = kv_heads * draw(st.sampled_from((1, 2, 4)))
    layers = draw(st.integers(1, 6))
    common = {
        "hidden_size": 64 * draw(st.integers(1, 4)),
        "intermediate_size": 128 * draw(st.integers(1, 4)),
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": draw(st.sampled_from((16, 32, 64))),
        "vocab_size": draw(st.integers(10, 5000)),
        "max_position_embeddings": 4096,
        "tie_word_embeddings": draw(st.booleans()),
    }
    kinds = [draw(st.sampled_from(("sliding_attention", "full_attention"))) for _ in range(layers)]
    families: dict[str, dict[str, Any]] = {
        "LlamaForCausalLM": {"attention_bias": draw(st.booleans())},
        "MistralForCausalLM": {"sliding_window": draw(st.integers(1, 3000))},
        "Gemma3ForCausalLM": {"sliding_window": 128, "layer_types": kinds},
        "MixtralForCausalLM": {"num_local_experts": 8, "num_experts_per_tok": 2},
        "DeepseekV2ForCausalLM": {
            "kv_lora_rank": 64,
            "qk_nope_head_dim": 16,
            "qk_rope_head_dim": 8,
            "v_head_dim": 16,
            "q_lora_rank": draw(st.sampled_from((None, 32))),
        },
        "Mamba2ForCausalLM": {
            "state_size": 16,
            "conv_kernel": 4,
            "num_heads": 8,
            "head_dim": 32,
            "n_groups": draw(st.sampled_from((1, 8))),
        },
    }
    name = draw(st.sampled_from(sorted(families)))
    return {"architectures": [name], **common, **families[name]}


def read(config: dict[str, Any]) -> Model:
    return read_model(config, "config.json")[0]


def kept(model: Model, tokens: int, ranks: int = 1, kv_bytes: int = 2) -> int:
    groups = cache_groups([layer.cache for layer in model.layers])
    return request_bytes(groups, tokens, 16, ranks, kv_bytes, 2)


@given(configs(), st.integers(0, 5000), st.integers(0, 5000))
def test_a_longer_request_never_takes_less(config: dict[str, Any], one: int, other: int) -> None:
    model = read(config)
    assert kept(model, min(one, other)) <= kept(model, max(one, other))


@given(configs(), st.integers(1, 5000))
def test_less_precise_keys_and_values_never_take_more(config: dict[str, Any], tokens: int) -> None:
    model = read(config)
    assert kept(model, tokens, kv_bytes=1) <= kept(model, tokens, kv_bytes=2)


@given(configs())
def test_less_precise_weights_take_less(config: dict[str, Any]) -> None:
    model = read(config)
    sizes = [rank_weight_bytes(replace(model, element_bits=32))]
    sizes += [rank_weight_bytes(model, scheme) for scheme in SCHEMES]
    assert sizes == sorted(sizes, reverse=True)


@given(configs(), st.sampled_from(("heads", "layers", "head_dim")), st.integers(1, 5000))
def test_more_heads_or_layers_never_keep_less(
    config: dict[str, Any], what: str, tokens: int
) -> None:
    assert kept(read(config), tokens) <= kept(read(doubled(config, what)), tokens)


@given(configs(), st.sampled_from(("heads", "layers", "hidden_size", "vocab_size")))
def test_a_larger_model_never_weighs_less(config: dict[str, Any], what: str) -> None:
    sizes = [rank_weight_bytes(read(one)) for one in (config, doubled(config, what))]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[1] or what in ("heads", "vocab_size")  # states have none; padding


def doubled(config: dict[str, Any], what: str) -> dict[str, Any]:
    """Return the config of a model with twice as much of something."""
    if what == "heads":
        names = ["num_attention_heads", "num_key_value_heads"]
    else:
        names = ["num_hidden_layers" if what == "layers" else what]
    larger = {**config, **{name: 2 * config[name] for name in names}}
    if what == "layers" and "layer_types" in config:
        larger["layer_types"] = 2 * config["layer_types"]
    return larger


@given(configs(), st.sampled_from((2, 4, 8)), st.integers(1, 3000))
def test_more_ranks_never_take_more_on_any(config: dict[str, Any], ranks: int, tokens: int) -> None:
    model = read(config)
    for scheme in SCHEMES[:2]:
        try:
            split = rank_weight_bytes(model, scheme, Parallelism(ranks))
        except LayoutError:
            continue
        # A vocabulary is padded, and a scale a matrix is on each rank.
        assert split <= rank_weight_bytes(model, scheme)
        assert kept(model, tokens, ranks) <= kept(model, tokens)
        assert kept(model, tokens, ranks) * ranks >= kept(model, tokens)
    if not model.architecture.startswith("Mamba"):
        try:
            assert slot_bytes(model, 8, ranks) <= slot_bytes(model, 8)
        except LayoutError:
            return


@given(configs(), st.integers(1, 6))
def test_stages_hold_the_model_and_a_second_embedding_where_it_is_tied(
    config: dict[str, Any], stages: int
) -> None:
    model = read(config)
    assume(stages <= len(model.layers))
    parts = [rank_weight_bytes(model, None, Parallelism(1, stages), n) for n in range(stages)]
    rows, columns = model.embedding[0].rank_shape(1)
    twice = rows * columns * 2 if model.tied and stages > 1 else 0
    assert sum(parts) == rank_weight_bytes(model) + twice


@given(configs(), st.integers(2, 6))
def test_adapter_slots_of_stages_sum_to_the_whole(config: dict[str, Any], stages: int) -> None:
    model = read(config)
    assume(stages <= len(model.layers) and model.architecture != "Mamba2ForCausalLM")
    shares = stage_layers(len(model.layers), stages)
    assert sum(slot_bytes(model, 8, stage=share) for share in shares) == slot_bytes(model, 8)


@given(configs(), st.sampled_from((2, 4)))
def test_replicas_share_experts_only(config: dict[str, Any], replicas: int) -> None:
    model = read(config)
    alone, shared = (rank_weight_bytes(model, None, Parallelism(1, 1, n)) for n in (1, replicas))
    experts = sum(
        tensor.elements * tensor.copies * 2 for tensor in model.tensors() if tensor.experts
    )
    assert alone - shared == experts - experts // replicas


@given(
    configs(),
    st.builds(Parallelism, st.sampled_from((1, 2, 4)), st.integers(1, 3), st.sampled_from((1, 2))),
    st.sampled_from(SCHEMES),
    st.integers(2**20, 40 * GIB),
    st.integers(1, 4096),
)
def test_parts_sum_to_the_gpu_and_requests_fit_the_blocks(
    config: dict[str, Any],
    spread: Parallelism,
    scheme: Quantization | None,
    total: int,
    tokens: int,
) -> None:
    model = read(config)
    shape = EngineShape(
        parallelism=spread,
        max_num_seqs=8,
        max_num_batched_tokens=512,
        max_loras=0 if model.architecture == "Mamba2ForCausalLM" else 3,
    )
    try:
        found = budget(model, scheme, shape, total)
    except LayoutError:
        reject()
    assert sum(found.parts.values()) == total
    layout = found.layout
    assert layout is not None
    requests = found.requests(tokens)
    assert requests * layout.request_blocks(tokens) <= found.blocks
    assert (requests + 1) * layout.request_blocks(tokens) > found.blocks
    assert requests * tokens <= found.tokens(tokens) < (requests + 1) * tokens
    assert (found.blocks + 1) * layout.block_bytes <= max(
        found.parts["kv_pool"], layout.block_bytes
    )


@given(configs(), st.integers(1, 4096), st.sampled_from((16, 32, 64)))
def test_blocks_of_a_request_are_no_less_than_its_tokens_need(
    config: dict[str, Any], tokens: int, block_size: int
) -> None:
    model = read(config)
    layers = [layer.cache for layer in model.layers]
    groups = cache_groups(layers)
    layout = block_layout(layers, block_size, 1, 2, 2)
    assert layout is not None
    assert layout.request_blocks(tokens) * layout.block_bytes >= request_bytes(
        groups, tokens, layout.block_size, 1, 2, 2
    )
