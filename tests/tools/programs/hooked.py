"""Says what the probe hooks in a real engine: ``hooked.py MODEL`` prints one JSON object.

A program, since vLLM fills its process.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from vramscope.exporters.engine.probe import hooks
from vramscope.exporters.engine.reader import RecordReader

hooked: list[tuple[list[str], str]] = []


def main(model: str) -> dict[str, Any]:
    original = hooks.hook

    def recording(owner: Any, name: str, *args: Any, **kwargs: Any) -> bool:
        attached = original(owner, name, *args, **kwargs)
        if attached:
            kind = owner if isinstance(owner, type) else type(owner)
            hooked.append(([base.__name__ for base in kind.__mro__], name))
        return attached

    hooks.hook = recording  # before vLLM loads the plugin, which imports it from there
    from vllm import LLM

    flags = {"enable_lora": True, "max_lora_rank": 8, "num_gpu_blocks_override": 32}
    engine = LLM(model, enforce_eager=True, block_size=32, max_model_len=512, **flags)
    capabilities: dict[str, bool] = {}
    for path in Path(os.environ["VRAMSCOPE_RUN_DIR"]).glob("*.vramscope"):
        capabilities |= RecordReader(str(path)).state()["capabilities"]
    del engine
    return {"hooked": hooked, "capabilities": capabilities}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))  # noqa: T201
