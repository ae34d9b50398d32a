"""Counts preemptions in three ways in a real engine: ``native_lag.py MODEL``.

By a wrapper around what preempts, by the probe's record, and by vLLM's own counter, after each
step. Requests that wait preempted are then aborted, as when their clients leave. Stepped by hand,
so it goes the same way each time. A program and not a test, since vLLM fills its process. Prints
one JSON object.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from vramscope.exporters.engine.reader import RecordReader

FLAGS = {
    "block_size": 32,
    "disable_log_stats": False,
    "dtype": "float32",
    "enforce_eager": True,
    "max_model_len": 512,
    "max_num_seqs": 12,
    "num_gpu_blocks_override": 20,
    "seed": 0,
}
REQUESTS = 12
ABORTED = 3


class Counts(NamedTuple):
    """Preemptions so far."""

    independent: int
    probe: int
    native: int


class Engine:
    """A real engine with vLLM's own statistics on."""

    def __init__(self, model: str) -> None:
        from vllm import LLM

        self.llm = LLM(model, **FLAGS)
        self.engine = self.llm.llm_engine
        self.scheduler = self.engine.engine_core.engine_core.scheduler
        self._preempted = 0
        preempt = self.scheduler._preempt_request

        def watched(*args: Any, **kwargs: Any) -> Any:
            self._preempted += 1
            return preempt(*args, **kwargs)

        self.scheduler._preempt_request = watched
        (path,) = Path(os.environ["VRAMSCOPE_RUN_DIR"]).glob("*engine0*.vramscope")
        self._record = RecordReader(str(path))  # never closed: that would drop the writer's lock

    def counts(self) -> Counts:
        step = self._record.step()
        ours = sum(int(v) for name, v in step.items() if name.startswith("preemptions_"))
        (native,) = (m for m in self.llm.get_metrics() if m.name == "vllm:num_preemptions")
        return Counts(self._preempted, ours, int(native.value))

    def send(self, name: str) -> None:
        from vllm import SamplingParams

        prompt = {"prompt_token_ids": [3 + (7 * n) % 200 for n in range(40)]}
        self.engine.add_request(
            name, prompt, SamplingParams(max_tokens=200, temperature=0, ignore_eos=True)
        )

    def waiting_preempted(self) -> list[str]:
        requests = self.scheduler.requests.values()
        return [one.request_id for one in requests if one.status.name == "PREEMPTED"]


def main(model: str) -> dict[str, Any]:
    engine = Engine(model)
    for k in range(REQUESTS):
        engine.send(f"cmpl-{k}-0")
    history = []
    while len(engine.waiting_preempted()) < ABORTED:
        engine.engine.step()
        history.append(engine.counts())
    left = engine.waiting_preempted()[:ABORTED]
    # Requests have a name inside and the one they came with.
    inside = engine.engine.output_processor.request_states
    engine.engine.abort_request([inside[one].external_req_id for one in left])
    while engine.engine.has_unfinished_requests():
        engine.engine.step()
        history.append(engine.counts())
    return {"history": history, "aborted": len(left), "end": engine.counts()}


if __name__ == "__main__":
    outcome = main(sys.argv[1])
    sys.stdout.write("\n" + json.dumps(outcome) + "\n")
