"""KV memory in the record against a recount, in real engines, after each of their steps."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).parent / "programs"
# One process, one thread, few blocks: the settings under which vLLM's CPU build is quick.
SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "VRAMSCOPE_ENGINE": "exact",
    "VRAMSCOPE_SCAN_PERIOD_S": "0",
}
BLOCKS = {"whole": "32", "sliding": "80", "mamba": "48"}

pytestmark = pytest.mark.vllm


def run(program: str, *arguments: str, **settings: str) -> str:
    """Run a program in an environment of its own; return what it said."""
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / program), *arguments],
        env={**os.environ, **SETTINGS, **settings},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module", params=sorted(BLOCKS))
def counted(
    request: pytest.FixtureRequest, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What the program found with one model."""
    kind: str = request.param
    model = tiny_model
    if kind != "whole":
        model = tmp_path_factory.mktemp("model")
        run("hybrid_model.py", kind, str(model))
    folder = str(tmp_path_factory.mktemp("records"))
    said = run("exact_kv.py", str(model), VRAMSCOPE_RUN_DIR=folder, EXACT_BLOCKS=BLOCKS[kind])
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
