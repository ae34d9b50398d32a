"""Runs a real engine on two tensor-parallel ranks: ``ranks.py MODEL ADAPTERS``.

Prints one JSON object: what a reader on this host saw of each rank while the engine lived.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any


def main(model: str, adapters: str) -> dict[str, Any]:
    from vllm import LLM, SamplingParams
    from vllm.lora.request import LoRARequest

    lora = adapters != "-"
    more = {"enable_lora": True, "max_loras": 1, "max_cpu_loras": 2, "max_lora_rank": 8}
    engine = LLM(
        model,
        tensor_parallel_size=2,
        distributed_executor_backend="mp",
        enforce_eager=True,
        dtype="float32",
        max_model_len=256,
        block_size=32,
        num_gpu_blocks_override=32,
        **(more if lora else {}),
    )
    params = SamplingParams(max_tokens=4, temperature=0, ignore_eos=True)
    names = ("ad0", "ad1", "ad0") if lora else (None, None, None)
    for name in names:
        request = LoRARequest(name, int(name[2:]) + 1, f"{adapters}/{name}") if name else None
        engine.generate(["hello"], params, lora_request=request, use_tqdm=False)
    return {"records": records(), "sample": sample()}


def records() -> list[dict[str, Any]]:
    """Return header and fields of each record but this process's own."""
    from vramscope.exporters.engine.reader import RecordReader

    found = []
    for path in sorted(Path(os.environ["VRAMSCOPE_RUN_DIR"]).glob("*.vramscope")):
        reader = RecordReader(str(path))  # never closed: it may be this process's own lock
        header = {k: reader.header.get(k) for k in ("role", "rank", "tp_rank", "pp_rank", "pid")}
        found.append({**header, "state": reader.state(), **reader.scan(), **reader.step()})
    return found


def sample() -> dict[str, Any]:
    """Return what the exporter makes of them."""
    from vramscope.exporters.engine.host import HostRecords

    (reading,) = [r for r in HostRecords(Path(os.environ["VRAMSCOPE_RUN_DIR"])).read() if r.sample]
    assert reading.sample is not None
    return {
        "error": reading.error,
        "ranks": reading.sample.ranks,
        "processes": [process.first_rank for process in reading.sample.processes],
        "vram_ranks": [vram.rank for vram in reading.sample.vram],
        "lora": dict(reading.sample.lora.loads) if reading.sample.lora else None,
    }


if __name__ == "__main__":
    outcome = main(*sys.argv[1:])
    sys.stdout.write("\n" + json.dumps(outcome) + "\n")
