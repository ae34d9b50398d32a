"""The goldens of the memory arithmetic are what the installed vLLM builds for their models."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[4]
sys.path.insert(0, str(ROOT / "tools" / "goldens"))  # scripts run by path find each other like this

from goldens import build, rendered  # noqa: E402
from wanted import GOLDENS, MODELS, WANTED, Variant, Wanted  # noqa: E402

STALE = "run: make goldens-kv"


def golden(model: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((GOLDENS / f"{model}.json").read_text())
    return read


@pytest.mark.vllm
@pytest.mark.parametrize(
    ("model", "variant"),
    [("llama32-1b", Variant(1)), ("gpt2", Variant(4)), ("jamba-mini", Variant(1))],
)
def test_vllm_still_builds_the_golden(model: str, variant: Variant) -> None:
    pytest.importorskip("vllm")
    built = build(model, variant)
    assert built.pop("vllm") == golden(model)["vllm"], STALE
    assert built in golden(model)["variants"], STALE


@pytest.mark.parametrize("wanted", WANTED, ids=lambda wanted: wanted.model)
def test_each_wanted_variant_has_its_golden(wanted: Wanted) -> None:
    found = [
        Variant(variant["tp"], variant["kv_cache_dtype"])
        for variant in golden(wanted.model)["variants"]
    ]
    assert found == wanted.variants, STALE


def test_models_and_goldens_are_those_wanted() -> None:
    names = sorted(wanted.model for wanted in WANTED)
    assert sorted(file.stem for file in MODELS.iterdir()) == names
    assert sorted(file.stem for file in GOLDENS.iterdir()) == names


def test_weight_bytes_are_those_of_the_parameters() -> None:
    sizes = {"bfloat16": 2, "float16": 2, "float32": 4, "int32": 4, "int8": 1, "uint8": 1}
    sizes["float8_e4m3fn"] = 1
    for wanted in WANTED:
        for variant in golden(wanted.model)["variants"]:
            total = 0
            for tensor in variant["parameters"].values():
                elements = 1
                for length in tensor["shape"]:
                    elements *= length
                total += elements * sizes[tensor["dtype"]] * tensor["count"]
            assert total == variant["weight_bytes"], (wanted.model, variant["tp"])


def test_a_golden_has_a_line_for_each_tensor() -> None:
    tensor = {"shape": [4096, 4096], "dtype": "bfloat16", "count": 32}
    parameters = {f"model.layers.*.self_attn.{name}_proj.weight": tensor for name in "qkvo"}
    lines = rendered({"parameters": parameters}).splitlines()
    assert lines[2] == f'    "model.layers.*.self_attn.q_proj.weight": {json.dumps(tensor)},'
    assert len(lines) == 2 + 4 + 2
    assert json.loads("".join(lines)) == {"parameters": parameters}
