"""Whole steps of a real engine with and without the probe: ``engine_ratio.py STEPS SCRATCH``.

The demo's tiny model on the CPU: a step here is shorter than any on a GPU, so the probe weighs
more. Prints JSON: seconds of each step by engine.
"""

import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

from turns import Ask, forked
from vllm import LLM, SamplingParams

from vramscope.demo.tiny_model import make_tiny_model

BATCH = 64
TURN_STEPS = 5
WARM_TURNS = 20
FLAGS = {
    "block_size": 32,
    "dtype": "float32",
    "enforce_eager": True,
    "max_model_len": 512,
    "max_num_batched_tokens": 512,
    "max_num_seqs": BATCH,
    "num_gpu_blocks_override": 2048,
    "seed": 0,
}


def main(steps: int, scratch: Path) -> dict[str, list[float]]:
    """Step two engines without the probe and two with it, in turns."""
    os.environ["VRAMSCOPE_RUN_DIR"] = str(scratch / "run")
    model = make_tiny_model(scratch / "tiny")

    def bare() -> Ask:
        os.environ["VRAMSCOPE_PROBE"] = "0"
        return engine(model)

    def probed() -> Ask:
        os.environ["VRAMSCOPE_PROBE"] = "1"
        return engine(model)

    engines = {"bare": bare, "probed": probed, "bare_again": bare, "probed_again": probed}
    with forked(engines) as turns:
        return turns.step(steps // TURN_STEPS, WARM_TURNS)


def engine(model: Path) -> Ask:
    """Boot one and keep it at ``BATCH`` requests: a new one for each that finishes."""
    running = LLM(str(model), **FLAGS).llm_engine
    draw = random.Random(1)  # noqa: S311 (a bench)
    sent = 0

    def send() -> None:
        nonlocal sent
        sent += 1
        prompt = {
            "prompt_token_ids": [draw.randrange(3, 250) for _ in range(draw.randrange(16, 96))]
        }
        length = SamplingParams(max_tokens=draw.randrange(50, 400), temperature=0, ignore_eos=True)
        running.add_request(f"cmpl-{sent}-0", prompt, length)

    def step_s() -> float:
        started_s = time.perf_counter()
        outputs = running.step()
        took_s = time.perf_counter() - started_s
        for _ in range(sum(one.finished for one in outputs)):
            send()
        return took_s

    def ask(_: str) -> Any:
        return [step_s() for _ in range(TURN_STEPS)]

    for _ in range(BATCH):
        send()
    return ask


if __name__ == "__main__":
    result = main(int(sys.argv[1]), Path(sys.argv[2]))
    sys.stdout.write("\n" + json.dumps(result) + "\n")
