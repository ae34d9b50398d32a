"""``vramscope plan --engine``: what was computed beside what a real engine takes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

AS_STARTED = [
    *("--dtype", "float32", "--block-size", "32", "--max-num-seqs", "16", "--enforce-eager"),
    *("--max-loras", "1", "--lora-rank", "8", "--gpu-memory", "4GiB"),
]


def plan(model: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vramscope.exporters.cli", "plan", str(model), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("engine", ["a", "b"])
def test_kv_pool_and_adapter_slots_of_a_real_engine_are_as_planned(
    suite: Any, tiny_model: Path, engine: str
) -> None:
    of_engine = ["--engine", engine, "--run-dir", str(suite.run_dir)]
    done = plan(tiny_model, *AS_STARTED, *of_engine, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    rows = {row["part"]: row for row in found["measured"]["rows"]}
    assert rows["lora_slots"]["planned_bytes"] == rows["lora_slots"]["measured_bytes"]
    # The engine was told its number of blocks, so its pool is compared by them.
    assert found["measured"]["pool_from_blocks_bytes"] == rows["kv_pool"]["measured_bytes"]
    assert found["budget"]["part_bytes"]["lora_slots"] == rows["lora_slots"]["measured_bytes"]


def test_engine_of_another_shape_is_refused(suite: Any, tiny_model: Path) -> None:
    of_engine = ["--engine", "a", "--run-dir", str(suite.run_dir), "--tp", "2"]
    done = plan(tiny_model, *AS_STARTED, *of_engine)
    assert done.returncode == 1
    assert "a: runs on 1 ranks, the plan on 2: want --tp and --pp" in done.stderr


def test_engine_that_does_not_run_is_named_with_those_that_do(suite: Any, tiny_model: Path) -> None:
    of_engine = ["--engine", "c", "--run-dir", str(suite.run_dir)]
    done = plan(tiny_model, *AS_STARTED, *of_engine)
    assert done.returncode == 1
    assert "c: no such engine" in done.stderr
    assert done.stderr.rstrip().endswith("want one of a, b")
