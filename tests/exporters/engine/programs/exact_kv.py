"""Runs a real vLLM engine in this process and recounts its KV memory after each step.

``exact_kv.py MODEL``; prints one JSON object. What the record is compared with is counted from
scratch, from vLLM's own objects, and shares no code with the probe.
"""

import json
import math
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from naive_blocks import LENGTHS, Watched, length, recount_tables

REQUESTS = 90
MOST_TOKENS = 512
FLAGS = {
    "block_size": 32,
    "disable_hybrid_kv_cache_manager": False,
    "dtype": "float32",
    "enable_prefix_caching": True,
    "enforce_eager": True,
    "max_model_len": MOST_TOKENS,
    "max_num_batched_tokens": 128,  # prompts are longer: chunked prefill
    "max_num_seqs": 12,
    "seed": 0,
    "skip_tokenizer_init": True,
    "watermark": 0.05,
}
SOON_S = 0.05
"""The most by which the probe's clock is read before or after ours, over a run."""
SECONDS = ("_sum", "oldest_evictable_s", "token_seconds")


def main(model: str) -> dict[str, Any]:
    from vllm import LLM

    watched = watch_pools()
    blocks = int(os.environ["EXACT_BLOCKS"])
    engine = LLM(model, num_gpu_blocks_override=blocks, **FLAGS).llm_engine
    scheduler = engine.engine_core.engine_core.scheduler
    check = Check(scheduler, watched)
    aborted = drive(engine, check)
    groups = [type(one.kv_cache_spec).__name__ for one in check.managers]
    return {
        "mismatches": check.mismatches[:20],
        "seen": dict(check.seen),
        "groups": groups,
        "aborted": aborted,
    }


def watch_pools() -> dict[int, Watched]:
    """Watch each pool from its start, below all that the probe hooks."""
    from vllm.v1.core.block_pool import BlockPool

    watched: dict[int, Watched] = {}
    start = BlockPool.__init__

    def watched_start(self: Any, *args: Any, **kwargs: Any) -> None:
        start(self, *args, **kwargs)
        watched[id(self)] = Watched(self, time.monotonic)

    BlockPool.__init__ = watched_start
    return watched


def drive(engine: Any, check: "Check") -> int:
    """Send requests, abort some, reset the cache; step until all are answered."""
    from vllm import SamplingParams

    draw = random.Random(11)  # noqa: S311  # the same load in each run is the point
    prefixes = [[draw.randrange(3, 250) for _ in range(160)] for _ in range(3)]
    live: set[str] = set()
    sent = aborted = step = 0
    while sent < REQUESTS or engine.has_unfinished_requests():
        for _ in range(draw.choice((0, 0, 1, 1, 4)) if sent < REQUESTS else 0):
            prompt = draw.choice(prefixes)[: draw.choice((0, 33, 64, 160))]
            # A prompt of whole blocks, seen before: vLLM computes its last one again, a duplicate.
            again = len(prompt) in (64, 160) and draw.random() < 0.3
            own = 0 if again else draw.randrange(1, 90)
            prompt = prompt + [draw.randrange(3, 250) for _ in range(own)]
            params = SamplingParams(
                max_tokens=draw.choice((1, 20, 60, 150)), temperature=0, detokenize=False
            )
            engine.add_request(f"r{sent}", {"prompt_token_ids": prompt}, params)
            live.add(f"r{sent}")
            sent += 1
        if live and draw.random() < 0.02:
            victim = draw.choice(sorted(live))
            engine.abort_request([victim])
            live.discard(victim)
            aborted += 1
        if step == 150:
            engine.engine_core.engine_core.reset_prefix_cache(reset_running_requests=True)
        for output in engine.step():
            if output.finished:
                live.discard(output.request_id)
        step += 1
        check.after_step()
    return aborted


class Check:
    """Counts independently, and compares."""

    def __init__(self, scheduler: Any, watched: dict[int, Watched]) -> None:
        from vramscope.exporters.engine.reader import RecordReader

        (path,) = Path(os.environ["VRAMSCOPE_RUN_DIR"]).glob("*.engine0.*")
        self.record = RecordReader(str(path))
        self.scheduler = scheduler
        self.managers = scheduler.kv_cache_manager.coordinator.single_type_managers
        pool = scheduler.kv_cache_manager.block_pool
        self.watched = watched[id(pool)]
        self.mismatches: list[str] = []
        self.seen: Counter[str] = Counter()
        self.refused = Counter({"waiting": 0, "running": 0})
        self.last_refused: Any = None
        self.scan_time_s = 0.0
        self.ran: dict[str, tuple[Any, float, float]] = {}
        self.running_before: set[str] = set()
        self.held_token_s = self.oracle_token_s = 0.0
        self._watch_refusals(scheduler.kv_cache_manager)

    def _watch_refusals(self, manager: Any) -> None:
        allocate = manager.allocate_slots

        def watched_allocate(request: Any, *args: Any, **kwargs: Any) -> Any:
            blocks = allocate(request, *args, **kwargs)
            if blocks is None:
                whose = "running" if request.status.name == "RUNNING" else "waiting"
                self.refused[whose] += 1
                self.last_refused = request if whose == "waiting" else self.last_refused
            return blocks

        manager.allocate_slots = watched_allocate

    def after_step(self) -> None:
        """Compare the record with a scan of every block."""
        said = self.record.scan() | self.record.step()
        now_s = said["scan_time_s"]
        for name, want in self._truth(now_s).items():
            near = SOON_S if name.endswith(SECONDS) else 1e-6
            near += 1e-4 * want if name.endswith(SECONDS) else 0
            if not math.isclose(said[name], want, abs_tol=near):
                self.mismatches.append(f"{now_s}: {name} {said[name]} want {want}")
        self.scan_time_s = now_s

    def _truth(self, now_s: float) -> dict[str, float]:
        scheduler = self.scheduler
        running = {one.request_id: one.num_computed_tokens for one in scheduler.running}
        tables = recount_tables(self.managers, self.watched.pool, running)
        pool = self.watched.truth(now_s) | {
            name: value for name, value in tables.items() if not name.startswith("group")
        }
        free = pool["evictable"] + pool["clean"]
        found = {f"pool0_{name}": value for name, value in pool.items()}
        found |= {name: value for name, value in tables.items() if name.startswith("group")}
        lengths = Counter(map(length, running.values()))
        found |= {f"length_requests_le_{bound}": lengths[str(bound)] for bound in (*LENGTHS, "inf")}
        found |= self._reservations(free) | self._static(running, now_s)
        found["pool0_free_now"], found["pool0_evictable_now"] = free, pool["evictable"]
        for what in ("shared", "duplicates", "evictable", "slack", "resurrections"):
            self.seen[what] += pool[what] > 0
        for reuse in ("hit", "never_hit"):
            self.seen[f"evicted_{reuse}"] = int(pool[f"evicted_{reuse}_age_s_count"])
        self.seen["nulls"] += any(
            block.is_null
            for manager in self.managers
            for table in manager.req_to_blocks.values()
            for block in table
        )
        return found

    def _reservations(self, free: float) -> dict[str, float]:
        scheduler = self.scheduler
        watermark = int(0.05 * self.watched.pool.num_gpu_blocks) if scheduler.running else 0
        prefill = self._prefill()
        self.seen["reserved"] += prefill > 0
        self.seen["refused_waiting"] = self.refused["waiting"]
        self.seen["refused_running"] = self.refused["running"]
        found = {
            "reservation_watermark": watermark,
            "reservation_prefill": prefill,
            "reservation_refused_waiting": self.refused["waiting"],
            "reservation_refused_running": self.refused["running"],
            "pool0_reserved": min(watermark + prefill, free),
        }
        refused, self.last_refused = self.last_refused, None
        waits = refused is not None and refused.status.name in ("WAITING", "PREEMPTED")
        if waits and len(self.managers) == 1:
            found["reservation_refused_wants"] = -(-refused.num_tokens // FLAGS["block_size"])
            self.seen["wants"] += 1
        return found

    def _prefill(self) -> int:
        """Count the blocks that admitted prefills will still take, for a whole-attention model."""
        scheduler, size = self.scheduler, FLAGS["block_size"]
        if len(self.managers) > 1:  # windows and states cap it: then vLLM's own word is taken
            return int(scheduler._inflight_prefill_reserved_blocks())
        tables = self.managers[0].req_to_blocks
        return sum(
            -(-one.num_tokens // size) - len(tables[one.request_id])
            for one in scheduler.running
            if one.num_computed_tokens < one.num_tokens - 1  # not yet at its newest token
        )

    def _static(self, running: dict[str, int], now_s: float) -> dict[str, float]:
        for request_id, (request, token_s, seconds) in list(self.ran.items()):
            if request_id not in self.scheduler.requests:
                self.held_token_s += token_s
                self.oracle_token_s += seconds * request.num_tokens
                del self.ran[request_id]
        passed_s = now_s - self.scan_time_s
        for request in self.scheduler.running:
            name = request.request_id
            _, token_s, seconds = self.ran.get(name, (request, 0.0, 0.0))
            if name in self.running_before:
                token_s += running[name] * passed_s
                seconds += passed_s
            self.ran[name] = request, token_s, seconds
        self.running_before = set(running)
        doubled = [next(2**n for n in range(12) if 2**n >= tokens) for tokens in running.values()]
        self.seen["left_seconds"] += self.oracle_token_s > 0
        return {
            "static_tokens": sum(running.values()),
            "static_max_model_len": MOST_TOKENS * len(running),
            "static_power_of_two": sum(doubled),
            "static_held_token_seconds": self.held_token_s,
            "static_oracle_token_seconds": self.oracle_token_s,
        }


if __name__ == "__main__":
    outcome = main(*sys.argv[1:])
    sys.stdout.write("\n" + json.dumps(outcome) + "\n")
