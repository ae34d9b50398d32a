"""What a plan says, by its own numbers."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vramscope.controller.plan.article import article_formula
from vramscope.controller.plan.plan import Plan, make_plan
from vramscope.controller.plan.target import (
    Target,
    TargetError,
    found_target,
    kind_target,
    size_target,
)
from vramscope.exporters.signals.gpu import GpuIdentity, GpuSample
from vramscope.exporters.signals.memory.budget import EngineShape, budget
from vramscope.exporters.signals.memory.read_model import read_model

GIB = 1024**3
LLAMA_8B: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}
LENGTHS = (1024, 4096, 8192)


def plan(total: int = 80 * GIB, adapters: int = 0, **changes: Any) -> Plan:
    model, quantization = read_model({**LLAMA_8B, **changes}, "config.json")
    shape = EngineShape(max_loras=1 if adapters else 0)
    return make_plan(model, quantization, Target("a GPU", total), shape, LENGTHS, adapters)


def test_llama_3_8b_on_80_gib() -> None:
    found = plan()
    assert found.token_bytes == 131_072
    assert found.budget.parts["weights"] == 16_060_522_496  # as its safetensors files
    assert found.budget.parts["activations"] == pytest.approx(1.26 * GIB, rel=0.05)
    assert found.requests[8192] == found.budget.blocks // 512
    assert found.tokens == pytest.approx(found.budget.blocks * 16, abs=16)


def test_what_does_not_fit_says_with_how_many_ranks_it_does() -> None:
    found = plan(total=12 * GIB)
    assert not found.budget.fits
    assert found.budget.parts["kv_pool"] < 0
    assert found.suggestion is None
    assert found.fits_with == 2
    assert set(found.requests.values()) == {0}


def test_what_fits_nowhere_says_so() -> None:
    assert plan(total=1 * GIB).fits_with is None


@settings(deadline=None)
@given(st.integers(16, 300), st.integers(0, 200), st.sampled_from((1, 2, 4)))
def test_a_plan_of_its_own_suggestion_fits(gib: int, adapters: int, layers: int) -> None:
    model, _ = read_model({**LLAMA_8B, "num_hidden_layers": 8 * layers}, "config.json")
    target = Target("a GPU", gib * GIB)
    first = make_plan(model, None, target, EngineShape(), LENGTHS, adapters)
    if first.suggestion is None:
        assert not first.budget.fits or gib <= 20
        return
    shape = first.suggestion.shape
    again = make_plan(model, None, target, shape, LENGTHS, adapters)
    assert again.budget == first.suggestion.budget
    assert again.budget.fits
    # The requests it is for run at once, and keep the watermark free.
    assert again.budget.requests(LENGTHS[1]) >= min(shape.max_num_seqs, 1)
    assert 0 <= shape.watermark < 1
    assert shape.max_loras <= max(adapters, 0)


def test_each_quantisation_buys_more_than_the_one_before() -> None:
    found = plan()
    by_name = {one.name: one for one in found.variants}
    assert (
        by_name["int4 weights (AWQ, group 128)"].weight_bytes
        < by_name["fp8 weights"].weight_bytes
        < by_name["as it is"].weight_bytes
    )
    assert by_name["as it is, fp8 KV"].requests[1024] > by_name["as it is"].requests[1024]


def test_a_quantised_model_is_not_quantised_again() -> None:
    found = plan(quantization_config={"quant_method": "fp8"})
    assert [one.name for one in found.variants] == ["as it is", "as it is, fp8 KV"]


def test_adapters_take_slots_and_at_most_a_tenth_of_the_pool() -> None:
    none, some = plan(), plan(adapters=1000)
    assert none.suggestion is not None
    assert some.suggestion is not None
    slots = some.suggestion.budget.parts["lora_slots"]
    assert 0 < slots <= 0.1 * none.suggestion.budget.parts["kv_pool"] + slots // 1000
    assert some.suggestion.shape.max_loras > 1


def test_the_articles_formula_is_four_times_too_much_for_grouped_queries() -> None:
    model, _ = read_model(LLAMA_8B, "config.json")
    found = article_formula(model, 1024, 16, 2)
    assert (found.article_token_bytes, found.token_bytes) == (524_288, 131_072)
    assert found.why == ("8 heads of keys and values serve 32 query heads",)


def test_the_articles_formula_is_right_for_multi_head_attention() -> None:
    model, _ = read_model({**LLAMA_8B, "num_key_value_heads": 32}, "config.json")
    found = article_formula(model, 1024, 16, 2)
    assert (found.article_token_bytes, found.why) == (found.token_bytes, ())
    assert found.article_request_bytes == found.request_bytes


def test_the_articles_formula_has_no_meaning_without_attention() -> None:
    config = {
        "architectures": ["MambaForCausalLM"],
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "state_size": 8,
        "conv_kernel": 4,
        "vocab_size": 100,
        "torch_dtype": "bfloat16",
    }
    model, _ = read_model(config, "config.json")
    found = article_formula(model, 1024, 16, 2)
    assert (found.article_token_bytes, found.token_bytes) == (None, 0)
    assert found.request_bytes == 2 * (128 * 3 + 128 * 8) * 2


def test_measured_parts_take_the_place_of_computed_ones() -> None:
    model, _ = read_model(LLAMA_8B, "config.json")
    found = budget(model, None, EngineShape(), 80 * GIB, {"activations": GIB, "kv_pool": 7})
    assert found.parts["activations"] == GIB
    assert "activations" not in found.estimates
    assert sum(found.parts.values()) == 80 * GIB


@pytest.mark.parametrize(
    ("text", "size"), [("80GiB", 80 * GIB), ("24 GB", 24 * 10**9), ("24576MiB", 24 * GIB)]
)
def test_sizes_are_read_with_their_unit(text: str, size: int) -> None:
    assert size_target(text).total_bytes == size


@pytest.mark.parametrize("text", ["", "80", "GiB", "-1GiB", "1e9GiB", "nan", "80 parsecs"])
def test_what_is_no_size_says_what_one_is(text: str) -> None:
    with pytest.raises(TargetError, match="want a GPU's memory, such as 80GiB or 24GB"):
        size_target(text)


def test_kind_has_what_its_driver_reports() -> None:
    assert kind_target("H100 SXM").total_bytes == 81559 * 2**20


def gpu(index: int, gib: int) -> GpuSample:
    return GpuSample(
        GpuIdentity(index, f"GPU-{index}"), 0.0, memory_bytes={"total": gib * GIB, "free": GIB}
    )


def test_of_this_hosts_gpus_the_smallest_counts_or_the_one_named() -> None:
    gpus = [gpu(0, 80), gpu(1, 40)]
    assert found_target(gpus, None).total_bytes == 40 * GIB
    assert found_target(gpus, 0).total_bytes == 80 * GIB
    with pytest.raises(TargetError, match=r"no GPU 7 on this host \(found: 0, 1\)"):
        found_target(gpus, 7)
    with pytest.raises(TargetError, match=r"no GPU on this host \(found: none\)"):
        found_target([], None)
