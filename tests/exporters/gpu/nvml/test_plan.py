"""``vramscope plan`` for the GPUs of a host, whose NVML is synthetic here."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MODEL: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
}


@pytest.mark.parametrize("options", [[], ["--gpu", "3"]])
def test_gpu_that_is_found_is_planned_for(
    real_named_library: Path, tmp_path: Path, options: list[str]
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(MODEL))
    done = subprocess.run(
        [sys.executable, "-m", "vramscope.exporters.cli", "plan", tmp_path, *options, "--json"],
        env={**os.environ, "LD_LIBRARY_PATH": str(real_named_library)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["gpu"]["name"].startswith("GPU 3, " if options else "GPU ")
    assert found["gpu"]["total_bytes"] == sum(found["budget"]["part_bytes"].values())
    assert 0 <= found["gpu"]["free_bytes"] <= found["gpu"]["total_bytes"]


def test_gpu_that_is_not_there_names_those_that_are(
    real_named_library: Path, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(MODEL))
    done = subprocess.run(
        [sys.executable, "-m", "vramscope.exporters.cli", "plan", tmp_path, "--gpu", "9"],
        env={**os.environ, "LD_LIBRARY_PATH": str(real_named_library)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "no GPU 9 on this host (found: 0, 1, 2, 3, 4, 5, 6, 7)" in done.stderr
