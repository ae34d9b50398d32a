"""What the demo runs: the vramscope.yaml of two engines that are short of KV memory."""

from pathlib import Path
from typing import Any

import yaml

from vramscope.demo.adapters import RANK, make_adapters
from vramscope.demo.tiny_model import make_tiny_model

__all__ = ["ADAPTERS", "ENGINES", "MODEL", "configuration"]

ENGINES = ("a", "b")
MODEL = "tiny"
ADAPTERS = ("ad0", "ad1", "ad2")
ENGINE_ARGS = (
    # Small and quick to start on a CPU.
    *("--enforce-eager", "--dtype", "float32", "--max-model-len", "512"),
    # 31 usable blocks for up to 16 requests: memory runs out, requests are preempted.
    *("--block-size", "32", "--num-gpu-blocks-override", "32", "--max-num-seqs", "16"),
    # Three adapters, one slot: loads from memory and from disk.
    *("--max-loras", "1", "--max-cpu-loras", "2", "--max-lora-rank", str(RANK)),
)
ENGINE_ENV = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    # Two engines share few cores: one thread each, worker and EngineCore in one process.
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}
DRAIN_S = 5


class Plain(yaml.SafeDumper):
    """Writes what two engines share in full, twice: easier to read and to edit than aliases."""

    def ignore_aliases(self, data: object) -> bool:
        """Use none."""
        del data
        return True


def configuration(folder: Path, logs: Path) -> str:
    """Make the model and its adapters; return the controller's configuration."""
    engine: dict[str, Any] = {
        "model": str(make_tiny_model(folder / MODEL)),
        "served_name": MODEL,
        "args": list(ENGINE_ARGS),
        "env": ENGINE_ENV,
        "adapters": {
            name: str(path)
            for name, path in make_adapters(folder / "adapters", len(ADAPTERS)).items()
        },
    }
    settings = {
        "engines": [{"name": name, **engine} for name in ENGINES],
        "front_door": {"port": 0},
        "admin": {"port": 0},
        "policy": "seed",
        "log_dir": str(logs),
        "drain_timeout_s": DRAIN_S,
    }
    return yaml.dump(settings, Dumper=Plain, sort_keys=False)
