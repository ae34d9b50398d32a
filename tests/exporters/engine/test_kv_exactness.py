"""KV memory in the record against a recount, in real engines, after each of their steps."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).parent / "programs"
BLOCKS = {"whole": "32", "sliding": "80", "mamba": "48"}

pytestmark = pytest.mark.vllm


@pytest.fixture(scope="module", params=sorted(BLOCKS))
def counted(
    request: pytest.FixtureRequest,
    tiny_model: Path,
    tmp_path_factory: pytest.TempPathFactory,
    vllm_program: Callable[..., str],
) -> dict[str, Any]:
    """What the program found with one model."""
    kind: str = request.param
    model = tiny_model
    if kind != "whole":
        model = tmp_path_factory.mktemp("model")
        vllm_program(PROGRAMS / "hybrid_model.py", kind, model)
    folder = str(tmp_path_factory.mktemp("records"))
    settings = {"VRAMSCOPE_ENGINE": "exact", "EXACT_BLOCKS": BLOCKS[kind]}
    said = vllm_program(PROGRAMS / "exact_kv.py", model, VRAMSCOPE_RUN_DIR=folder, **settings)
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return {"kind": kind, **found}


def test_every_number_of_kv_memory_is_that_of_a_recount_after_each_step(
    counted: dict[str, Any],
) -> None:
    assert counted["mismatches"] == []


def test_model_caches_as_it_should(counted: dict[str, Any]) -> None:
    other = {"sliding": {"SlidingWindowSpec"}, "mamba": {"MambaSpec"}, "whole": set()}
    assert set(counted["groups"]) == {"FullAttentionSpec"} | other[counted["kind"]]
    assert bool(counted["seen"]["nulls"]) == (counted["kind"] != "whole")


@pytest.mark.parametrize(
    "what",
    [
        "shared",
        "duplicates",
        "evictable",
        "slack",
        "resurrections",
        "evicted_hit",
        "evicted_never_hit",
        "reserved",
        "refused_waiting",
        "refused_running",
        "left_seconds",
    ],
)
def test_what_the_recount_is_about_did_happen(counted: dict[str, Any], what: str) -> None:
    assert counted["seen"][what] > 0


def test_requests_were_aborted_too(counted: dict[str, Any]) -> None:
    assert 0 < counted["aborted"] < 90
