"""The arithmetic gives to the byte what vLLM builds, which ``make goldens-kv`` wrote down."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vramscope.exporters.signals.memory.block_layout import BlockLayout, block_layout
from vramscope.exporters.signals.memory.cache import AttentionCache
from vramscope.exporters.signals.memory.model import Model
from vramscope.exporters.signals.memory.read_model import read_config_file, read_model
from vramscope.exporters.signals.memory.weights import Parallelism, rank_weight_bytes

HERE = Path(__file__).parent
KV_BYTES = {"fp8": 1}
POOL_BYTES = 16 << 30


def cases() -> list[Any]:
    found = []
    for file in sorted((HERE / "goldens").glob("*.json")):
        for variant in json.loads(file.read_text())["variants"]:
            name = f"{file.stem}-tp{variant['tp']}-{variant['kv_cache_dtype']}"
            found.append(pytest.param(file.stem, variant, id=name))
    return found


def element_bytes(model: Model, variant: dict[str, Any]) -> int:
    return KV_BYTES.get(variant["kv_cache_dtype"], model.element_bits // 8)


def layout_of(model: Model, variant: dict[str, Any]) -> BlockLayout | None:
    layers = [layer.cache for layer in model.layers]
    kv_bytes, state_bytes = element_bytes(model, variant), model.element_bits // 8
    return block_layout(layers, 16, variant["tp"], kv_bytes, state_bytes)


def read(name: str, variant: dict[str, Any] | None = None) -> Any:
    model, quantization = read_model(read_config_file(HERE / "models" / f"{name}.json"), name)
    loaded = variant["dtype"] if variant else "bfloat16"
    return replace(model, element_bits={"float32": 32}.get(loaded, 16)), quantization


def test_at_least_fifteen_architectures_are_compared() -> None:
    names = {case.values[0] for case in cases()}
    assert len({read(name)[0].architecture for name in names}) >= 15


@pytest.mark.parametrize(("name", "variant"), cases())
def test_weights_are_what_vllm_builds(name: str, variant: dict[str, Any]) -> None:
    model, quantization = read(name, variant)
    found = rank_weight_bytes(model, quantization, Parallelism(variant["tp"]))
    assert found == variant["weight_bytes"]


@pytest.mark.parametrize(("name", "variant"), cases())
def test_what_each_layer_keeps_is_what_vllm_builds(name: str, variant: dict[str, Any]) -> None:
    model, _ = read(name, variant)
    ranks = variant["tp"]
    found: Counter[Any] = Counter()
    for layer in model.layers:
        cache = layer.cache
        if isinstance(cache, AttentionCache):
            token = cache.token_bytes(ranks, element_bytes(model, variant))
            found["attention", cache.window, cache.chunk, token] += 1
        elif cache is not None:
            found["state", None, None, cache.bytes(ranks, model.element_bits // 8)] += 1
    assert found == wanted(variant)


def wanted(variant: dict[str, Any]) -> Counter[Any]:
    counts: Counter[Any] = Counter()
    for spec in variant["layers"]:
        page = spec.get("page_size_unpadded_bytes") or spec["page_size_bytes"]
        if "Mamba" in spec["kind"]:
            counts["state", None, None, page] += spec["count"]
        else:
            window, chunk = spec.get("sliding_window"), spec.get("attention_chunk_size")
            counts["attention", window, chunk, page / spec["block_size"]] += spec["count"]
    return counts


@pytest.mark.parametrize(("name", "variant"), cases())
def test_page_at_a_stated_block_size_is_what_vllm_builds(
    name: str, variant: dict[str, Any]
) -> None:
    model, _ = read(name, variant)
    for spec in variant["layers"]:
        if "Mamba" in spec["kind"]:
            continue
        pages = {
            layer.cache.token_bytes(variant["tp"], element_bytes(model, variant))
            * spec["block_size"]
            for layer in model.layers
            if isinstance(layer.cache, AttentionCache)
        }
        assert (spec.get("page_size_unpadded_bytes") or spec["page_size_bytes"]) in pages


@pytest.mark.parametrize(("name", "variant"), cases())
def test_blocks_are_cut_as_vllm_cuts_them(name: str, variant: dict[str, Any]) -> None:
    groups = variant["groups_for_16_gib"]
    assert "groups" in groups, groups
    model, _ = read(name, variant)
    layout = layout_of(model, variant)
    assert layout is not None
    assert POOL_BYTES // layout.block_bytes == groups["num_blocks"]
    tables = sum(group["count"] for group in groups["groups"])
    assert sum(count for _, count in layout.tables) == tables
    if any("Mamba" not in group["kind"] for group in groups["groups"]):
        (block_size,) = {group["block_size"] for group in groups["groups"]}
        assert layout.block_size == block_size  # of states alone it is the longest sequence
