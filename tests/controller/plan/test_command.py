"""``vramscope plan`` as people and scripts run it."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

MODEL: dict[str, Any] = {
    "architectures": ["Qwen2ForCausalLM"],
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "max_position_embeddings": 32768,
    "torch_dtype": "bfloat16",
}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(MODEL))
    return folder


def plan(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vramscope.exporters.cli", "plan", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_page_has_budget_capacity_settings_and_both_formulas(model: Path) -> None:
    done = plan(model, "--gpu", "l40s")
    assert (done.returncode, done.stderr) == (0, "")
    for words in (
        "Qwen2ForCausalLM: 28 layers",
        "l40s: 45.0 GiB",
        "KV cache: 56 KiB a token",
        "--max-num-seqs",
        "int4 weights",
        "the articles' formula",
        "because 4 heads of keys and values serve 28 query heads",
    ):
        assert words in done.stdout
    assert "\x1b" not in done.stdout


def test_json_has_the_numbers_of_the_page(model: Path) -> None:
    done = plan(model, "--gpu-memory", "48GiB", "--tp", "4", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert found["kv"]["token_bytes"] == 14_336
    assert sum(found["budget"]["part_bytes"].values()) == 48 * 1024**3
    assert found["engine"]["tensor_parallel"] == 4


def test_what_does_not_fit_ends_with_1_and_says_what_is_lacking(model: Path) -> None:
    done = plan(model, "--gpu-memory", "8GiB")
    assert (done.returncode, done.stderr) == (1, "")
    assert "DOES NOT FIT" in done.stdout
    assert "it fits with --tp 4" in done.stdout


def test_picture_is_written_and_nothing_printed(model: Path, tmp_path: Path) -> None:
    for name in ("plan.svg", "plan.png"):
        done = plan(model, "--gpu", "l40s", "-o", tmp_path / name)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    words = "".join(ET.parse(tmp_path / "plan.svg").getroot().itertext())  # noqa: S314  # our own
    assert "Qwen2ForCausalLM on l40s" in words
    assert "int4 weights" in words
    assert (tmp_path / "plan.png").read_bytes().endswith(b"IEND\xaeB`\x82")


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["--gpu", "h100"], "several GPUs have this name: want h100-pcie or h100-nvl or", 1),
        (["--gpu", "h900-sxm"], "no such GPU is known here", 1),
        (["--gpu", "l40s", "--tp", "8"], "num_attention_heads is 28: can't be split over 8", 1),
        (["--gpu", "l40s", "--tp", "0"], "argument --tp: '0': want a whole number from 1 on", 2),
        (["--gpu", "l40s", "--lengths", "12,x"], "argument --lengths: 'x': want a whole", 2),
        (["--gpu", "l40s", "--gpu-memory", "8GiB"], "not allowed with argument --gpu", 2),
        (["--gpu-memory", "8"], "'8': want a GPU's memory, such as 80GiB or 24GB", 1),
        (["--gpu", "l40s", "-o", "plan.gif"], "want a name that ends in .svg or .png", 2),
        (["--gpu", "l40s", "--gpu-memory-utilization", "92"], "want a share over 0 to 1", 2),
    ],
)
def test_wrong_input_is_one_line_with_what_is_wanted(
    model: Path, arguments: list[str], words: str, code: int
) -> None:
    done = plan(model, *arguments)
    assert done.returncode == code
    assert words in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_bad_config_names_file_and_field(model: Path) -> None:
    (model / "config.json").write_text(json.dumps({**MODEL, "num_key_value_heads": -2}))
    done = plan(model, "--gpu", "l40s")
    assert done.returncode == 1
    assert f"{model}: num_key_value_heads is -2: want a whole number" in done.stderr


def test_host_without_a_gpu_asks_for_a_kind(model: Path) -> None:
    done = plan(model)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "--gpu KIND" in done.stderr
