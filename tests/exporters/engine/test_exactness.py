"""The record against an independent count, in a real engine, after each of its steps."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "programs" / "exact.py"

pytestmark = pytest.mark.vllm


Run = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def run(tiny_model: Path, tiny_adapters: dict[str, Path], vllm_program: Callable[..., str]) -> Run:
    """Runs the program in an environment of its own; returns what it found."""

    def start(folder: Path, **settings: str) -> dict[str, Any]:
        settings = {"VRAMSCOPE_ENGINE": "exact", "VRAMSCOPE_RUN_DIR": str(folder), **settings}
        said = vllm_program(PROGRAM, tiny_model, tiny_adapters["ad0"].parent, **settings)
        found: dict[str, Any] = json.loads(said.splitlines()[-1])
        return found

    return start


@pytest.fixture(scope="module")
def probed(run: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run(tmp_path_factory.mktemp("records"))


def test_record_equals_an_independent_count_after_each_step(probed: dict[str, Any]) -> None:
    assert probed["mismatches"] == []


@pytest.mark.parametrize(
    "what",
    [
        "preemptions",
        "cache_resets",
        "recomputed",
        "reserved",
        "reserving_steps",
        "chunks",
        "shared_blocks",
        "evictable_steps",
        "disk_loads",
        "by_tier",
        "victims",
        "repeats",
        "rehit_tokens",
        "abandoned_tokens",
        "resumed",
        "left",
        "decode",
        "waits_kv_blocks",
        "waits_lora_slot",
        "slot_waits",
        "gpu_evictions",
        "cpu_evictions",
    ],
)
def test_what_the_count_is_about_did_happen(probed: dict[str, Any], what: str) -> None:
    assert probed["seen"][what] > 0


def test_bytes_of_the_kv_pool_are_its_blocks_and_absent_is_what_a_cpu_has_not(
    probed: dict[str, Any],
) -> None:
    layers, kv_heads, head_dim, block_tokens, blocks, fp32 = 2, 2, 32, 32, 32, 4
    worker = probed["worker"]
    kv_pool = layers * 2 * kv_heads * head_dim * block_tokens * blocks * fp32
    assert worker["vram_kv_pool_bytes"] == kv_pool
    for absent in ("weights", "graphs", "activation_peak", "allocator"):  # vLLM packs CPU weights
        assert math.isnan(worker[f"vram_{absent}_bytes"]), absent


def test_bytes_of_the_adapter_slots_are_those_of_their_matrices(probed: dict[str, Any]) -> None:
    rank, fp32, vocabulary, hidden, layers = 8, 4, 300, 128, 2
    # Outputs and inputs of what a slot changes: attention, MLP, embedding and head.
    a_layer = [(128, 128), (64, 128), (64, 128), (128, 128), (256, 128), (256, 128), (128, 256)]
    both = [(vocabulary, hidden), (hidden, vocabulary)]
    numbers = sum(rank * (rows + columns) for rows, columns in a_layer * layers + both)
    assert probed["worker"]["vram_lora_slots_bytes"] == numbers * fp32


def test_requests_were_aborted_too(probed: dict[str, Any]) -> None:
    assert 0 < probed["aborted"] < probed["sent"]


def test_greedy_answers_are_the_same_without_the_probe(
    probed: dict[str, Any], run: Run, tmp_path: Path
) -> None:
    bare = run(tmp_path, VRAMSCOPE_PROBE="0")
    assert list(tmp_path.iterdir()) == []  # it really ran without
    assert bare["tokens"] == probed["tokens"]


def test_engine_serves_on_when_the_record_cannot_be_written(
    probed: dict[str, Any], run: Run, tmp_path: Path
) -> None:
    blocked = tmp_path / "a-file"
    blocked.write_text("in the way of the folder")
    bare = run(blocked, EXACT_CHECK="0")
    assert bare["tokens"] == probed["tokens"]


def test_bug_of_the_probe_switches_it_off_and_the_answers_stay_the_same(
    probed: dict[str, Any], run: Run, tmp_path: Path
) -> None:
    settings = {"EXACT_CHECK": "0", "EXACT_BREAK": "scan"}
    broken = run(tmp_path, **settings)
    assert broken["tokens"] == probed["tokens"]
    error = "update_from_output: ZeroDivisionError: a bug of the probe"
    assert broken["state"]["error"] == error
    assert not any(broken["state"]["capabilities"].values())


def test_record_is_exact_when_attached_by_the_schedulers_constructor(
    probed: dict[str, Any], run: Run, tmp_path: Path
) -> None:
    again = run(tmp_path, EXACT_ATTACH="init")
    assert again["mismatches"] == []
    assert again["seen"] == probed["seen"]
