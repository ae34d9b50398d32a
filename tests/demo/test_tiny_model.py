import json
from pathlib import Path

from safetensors.numpy import load_file
from tokenizers import Tokenizer

from vramscope.demo.adapters import make_adapters
from vramscope.demo.tiny_model import PROJECTIONS, make_tiny_model


def contents(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def test_the_model_is_the_same_in_every_run(tmp_path: Path) -> None:
    first, second = (contents(make_tiny_model(tmp_path / name)) for name in ("first", "second"))
    assert first == second
    assert set(first) == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }


def test_a_model_that_is_there_is_kept(tmp_path: Path) -> None:
    weights = make_tiny_model(tmp_path) / "model.safetensors"
    made = weights.stat().st_mtime_ns
    make_tiny_model(tmp_path)
    assert weights.stat().st_mtime_ns == made


def test_a_half_made_model_is_made_again(tmp_path: Path) -> None:
    whole = contents(make_tiny_model(tmp_path))
    (tmp_path / "config.json").unlink()
    (tmp_path / "model.safetensors").write_bytes(b"half")
    assert contents(make_tiny_model(tmp_path)) == whole


def test_weights_have_the_shapes_that_the_configuration_says(tiny_model: Path) -> None:
    config = json.loads((tiny_model / "config.json").read_text())
    weights = load_file(tiny_model / "model.safetensors")
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    kv = config["num_key_value_heads"] * config["head_dim"]
    assert weights["model.embed_tokens.weight"].shape == (config["vocab_size"], hidden)
    assert weights["model.layers.1.self_attn.q_proj.weight"].shape == (
        heads * config["head_dim"],
        hidden,
    )
    assert weights["model.layers.1.self_attn.k_proj.weight"].shape == (kv, hidden)
    assert len(weights) == 3 + config["num_hidden_layers"] * (2 + len(PROJECTIONS))


def test_any_text_survives_the_tokenizer(tiny_model: Path) -> None:
    tokenizer = Tokenizer.from_file(str(tiny_model / "tokenizer.json"))
    for text in ("hello world", "Grüße, 世界 🙂", "\x00\t\n"):
        ids = tokenizer.encode(text).ids
        assert tokenizer.decode(ids) == text
        assert len(ids) <= len(text.encode())


def test_each_adapter_changes_every_map_in_its_own_way(tmp_path: Path) -> None:
    folders = make_adapters(tmp_path, 3)
    assert list(folders) == ["ad0", "ad1", "ad2"]
    tensors = [load_file(path / "adapter_model.safetensors") for path in folders.values()]
    rank = json.loads((folders["ad0"] / "adapter_config.json").read_text())["r"]
    for name, (outputs, inputs) in PROJECTIONS.items():
        prefix = f"base_model.model.model.layers.0.{name}"
        assert tensors[0][f"{prefix}.lora_A.weight"].shape == (rank, inputs)
        assert tensors[0][f"{prefix}.lora_B.weight"].shape == (outputs, rank)
        distinct = {t[f"{prefix}.lora_B.weight"].tobytes() for t in tensors}
        assert len(distinct) == 3


def test_adapters_are_the_same_in_every_run(tmp_path: Path) -> None:
    make_adapters(tmp_path / "first", 2)
    make_adapters(tmp_path / "second", 2)
    assert contents(tmp_path / "first") == contents(tmp_path / "second")
