"""Runs a real vLLM engine in this process and checks the record after each step.

A program and not a test, since vLLM takes its settings from the environment and fills its
process: ``exact.py MODEL ADAPTERS``. Prints one JSON object. What it compares with is counted
here from scratch, from vLLM's own objects, and shares no code with the probe.
"""

import dataclasses
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from exact_adapters import AdaptersCheck
from exact_requests import RequestsCheck, queued

BLOCK = 32
REQUESTS = 90
FLAGS = {
    "block_size": BLOCK,
    "dtype": "float32",
    "enable_lora": True,
    "enforce_eager": True,
    "max_cpu_loras": 2,
    "max_lora_rank": 8,
    "max_loras": 1,
    "max_model_len": 512,
    "max_num_batched_tokens": 128,  # prompts are longer: chunked prefill
    "max_num_seqs": 12,
    "num_gpu_blocks_override": 32,
    "seed": 0,
    "watermark": 0.05,  # of 32 blocks: 1
}


def main(model: str, adapters: str) -> dict[str, Any]:
    from vllm import LLM
    from vllm.engine.arg_utils import EngineArgs

    if os.environ.get("EXACT_ATTACH") == "init":
        attach_by_init()
    known = {field.name for field in dataclasses.fields(EngineArgs)}
    flags = {name: value for name, value in FLAGS.items() if name in known}  # of any release
    engine = LLM(model, **flags).llm_engine
    core = engine.engine_core.engine_core
    if os.environ.get("EXACT_BREAK") == "scan":
        break_scan(core.scheduler._vramscope_probe)
    probed = "0" not in (os.environ.get("VRAMSCOPE_PROBE"), os.environ.get("EXACT_CHECK"))
    check = Check(core.scheduler, core) if probed else None
    result = drive(engine, adapters, check.after_step if check else lambda: None)
    if probed or "EXACT_BREAK" in os.environ:
        result["state"] = open_record("engine0").state()
    if check is not None:
        check.finish(result["sent"], result["aborted"], sum(map(len, result["tokens"].values())))
        result |= {"mismatches": check.mismatches[:20]}
        result["seen"] = {**check.seen, **check.requests.seen, **check.adapters.seen}
        result["worker"] = check.worker.scan()
    return result


def drive(engine: Any, adapters: str, after_step: Callable[[], None]) -> dict[str, Any]:
    """Send requests and step until all are answered; the same in each run."""
    draw = random.Random(7)  # noqa: S311  # the same load in each run is the point
    requests = Requests(draw, adapters)
    tokens: dict[str, list[int]] = {}
    live: set[str] = set()
    step = aborted = 0
    while requests.sent < REQUESTS or engine.has_unfinished_requests():
        for _ in range(draw.choice((0, 0, 1, 1, 4)) if requests.sent < REQUESTS else 0):
            live.add(requests.send(engine))
        if live and draw.random() < 0.02:
            victim = draw.choice(sorted(live))
            engine.abort_request([victim])
            live.discard(victim)
            aborted += 1
        waiting = preempted(engine.engine_core.engine_core.scheduler, live)
        if len(waiting) > 1 and step % 40 == 0:  # some leave between preemption and resumption
            engine.abort_request(waiting[:1])
            live.discard(waiting[0])
            aborted += 1
        if step == 150:
            engine.engine_core.engine_core.reset_prefix_cache(reset_running_requests=True)
        for output in engine.step():
            tokens[output.request_id] = list(output.outputs[0].token_ids)
            if output.finished:
                live.discard(output.request_id)
        step += 1
        after_step()
    return {"tokens": tokens, "sent": requests.sent, "aborted": aborted, "steps": step}


def preempted(scheduler: Any, live: set[str]) -> list[str]:
    """Return the names of the requests that were preempted and wait; vLLM's ids begin with them."""
    ids = [r.request_id for r in queued(scheduler) if r.status.name == "PREEMPTED"]
    return [name for name in sorted(live) if any(one.startswith(name) for one in ids)]


class Requests:
    """Draws prompts with shared beginnings, long and short, with and without an adapter."""

    def __init__(self, draw: random.Random, adapters: str) -> None:
        from vllm.lora.request import LoRARequest

        self.sent = 0
        self._draw = draw
        self._prefixes = [[draw.randrange(3, 250) for _ in range(96)] for _ in range(3)]
        self._loras = [LoRARequest(f"ad{k}", k + 1, f"{adapters}/ad{k}") for k in range(3)]

    def send(self, engine: Any) -> str:
        """Send one; return its id."""
        from vllm import SamplingParams

        draw = self._draw
        prompt = draw.choice(self._prefixes)[: draw.choice((0, 33, 64, 96))]
        prompt = prompt + [draw.randrange(3, 250) for _ in range(draw.randrange(1, 90))]
        length = draw.choice((1, 20, 60, 150))
        params = SamplingParams(max_tokens=length, temperature=0, ignore_eos=True)
        lora = draw.choice((None, None, *self._loras))
        name = f"cmpl-r{self.sent}-0"
        engine.add_request(name, {"prompt_token_ids": prompt}, params, lora_request=lora)
        self.sent += 1
        return name


def attach_by_init() -> None:
    """Attach as where a release offers no choice of scheduler class."""
    from vllm.config import SchedulerConfig

    from vramscope.exporters.engine.probe import attach

    setattr(SchedulerConfig, attach._MARK, True)  # so that the plugin leaves it alone
    attach._wrap_scheduler_init()


def break_scan(probe: Any) -> None:
    """Have a bug of the probe's own show in the middle of the run."""

    def broken(now: float) -> None:
        raise ZeroDivisionError("a bug of the probe")

    probe._scan = broken


def open_record(role: str) -> Any:
    """Open a record. Never closed: that would drop its writer's lock, which is this process's."""
    from vramscope.exporters.engine.reader import RecordReader

    (path,) = Path(os.environ["VRAMSCOPE_RUN_DIR"]).glob(f"*.{role}.*")
    return RecordReader(str(path))


class Check:
    """Counts independently, and compares."""

    def __init__(self, scheduler: Any, core: Any) -> None:
        self.record = open_record("engine0")
        self.worker = open_record("worker0")
        self.scheduler = scheduler
        self.mismatches: list[str] = []
        self.seen: Counter[str] = Counter()
        self.high_water: dict[str, int] = {}
        self.events: list[Any] = []
        self.steps = 0
        self.starts: dict[str, int] = {}
        self._watch(scheduler)
        self.requests = RequestsCheck(scheduler)
        worker = core.model_executor.driver_worker.worker
        self.adapters = AdaptersCheck(scheduler, worker.model_runner.lora_manager)

    def _watch(self, scheduler: Any) -> None:
        schedule, update = scheduler.schedule, scheduler.update_from_output
        preempt = scheduler._preempt_request

        def watched_schedule(*args: Any, **kwargs: Any) -> Any:
            output = schedule(*args, **kwargs)
            cached = output.scheduled_cached_reqs
            self.starts = dict(zip(cached.req_ids, cached.num_computed_tokens, strict=True))
            self.starts |= {n.req_id: n.num_computed_tokens for n in output.scheduled_new_reqs}
            return output

        def watched_update(output: Any, *args: Any, **kwargs: Any) -> Any:
            for request_id, count in output.num_scheduled_tokens.items():
                request = scheduler.requests[request_id]
                start = self.starts[request_id]
                again = self.high_water.get(request_id, 0)
                target = max(request.num_prompt_tokens, again)
                self.seen["prefill"] += max(0, min(start + count, target) - start)
                self.seen["recomputed"] += max(0, min(start + count, again) - start)
                self.seen["chunks"] += start + count < target
            return update(output, *args, **kwargs)

        def watched_preempt(request: Any, *args: Any, **kwargs: Any) -> Any:
            lost = request.num_computed_tokens
            rid = request.request_id
            self.high_water[rid] = max(lost, self.high_water.get(rid, 0))
            self.seen["preemptions"] += 1
            self.seen["lost"] += lost
            return preempt(request, *args, **kwargs)

        scheduler.schedule, scheduler.update_from_output = watched_schedule, watched_update
        scheduler._preempt_request = watched_preempt

    def after_step(self) -> None:
        """Compare the record with a scan of every block."""
        self.steps += 1
        step = self.record.scan() | self.record.step()
        reasons = self.requests.waiting(step)
        truths = {
            **self._scan(),
            **self.requests.truth(self.steps),
            **self.adapters.truth_of_scheduler(),
        }
        step["waiting_sum"], truths["waiting_sum"] = sum(reasons.values()), truths["waiting"]
        for name, truth in truths.items():
            if abs(step[name] - truth) > 1e-6:
                self.mismatches.append(f"step {self.steps}: {name} {step[name]} want {truth}")
        # Not in the record, but what keeps the probe from looking at every block.
        (tracked,) = self.scheduler._vramscope_probe._pools.trackers
        extra = sum(max(0, b.ref_cnt - 1) for b in tracked.pool.blocks if not b.is_null)
        if tracked.extra_references != extra:
            self.mismatches.append(f"extra references {tracked.extra_references} want {extra}")
        found, lost, _ = self.record.events(len(self.events))
        self.events += found
        self.seen["lost_events"] += lost

    def _scan(self) -> dict[str, float]:
        scheduler = self.scheduler
        pool = scheduler.kv_cache_manager.block_pool
        blocks = [block for block in pool.blocks if not block.is_null]
        fill: dict[int, float] = {}
        for request in scheduler.running:
            for manager in scheduler.kv_cache_manager.coordinator.single_type_managers:
                for index, block in enumerate(manager.req_to_blocks[request.request_id]):
                    kept = request.num_computed_tokens - index * BLOCK
                    part = max(0, min(kept, BLOCK)) / BLOCK
                    fill[block.block_id] = max(part, fill.get(block.block_id, 0.0))
        evictable = sum(b.ref_cnt == 0 and b.block_hash is not None for b in blocks)
        clean = sum(b.ref_cnt == 0 and b.block_hash is None for b in blocks)
        self.seen["shared_blocks"] += sum(b.ref_cnt > 1 for b in blocks)
        self.seen["evictable_steps"] += evictable > 0
        return {
            "pool0_blocks": len(blocks),
            "pool0_live": sum(fill.values()),
            "pool0_slack": len(fill) - sum(fill.values()),
            "pool0_held": sum(b.ref_cnt > 0 and b.block_id not in fill for b in blocks),
            "pool0_reserved": self._reserved(evictable + clean),
            "pool0_evictable": evictable,
            "pool0_clean": clean,
            "pool0_free_now": evictable + clean,
            "pool0_evictable_now": evictable,
            "running": len(scheduler.running),
            "waiting": len(queued(scheduler)),
            "steps": self.steps,
        }

    def _reserved(self, free: int) -> int:
        """Count the watermark and what admitted prefills will still take, if there is as much."""
        scheduler = self.scheduler
        if not hasattr(scheduler, "_inflight_prefill_reserved_blocks"):
            return 0  # a release that reserves nothing
        reserved = 1 if scheduler.running else 0
        tables = scheduler.kv_cache_manager.coordinator.single_type_managers[0].req_to_blocks
        for request in scheduler.running:
            if request.num_computed_tokens < request.num_tokens - 1:  # not yet at its newest token
                whole = -(-request.num_tokens // BLOCK)
                reserved += whole - len(tables[request.request_id])
                self.seen["reserving_steps"] += 1
        self.seen["reserved"] += min(reserved, free)
        return min(reserved, free)

    @staticmethod
    def _accounted_for(record: dict[str, float]) -> float:
        """Return what became of the lost tokens, once nobody owes any."""
        found_again = record["preemption_rehit_tokens"]
        return found_again + record["recomputed_tokens"] + record["preemption_abandoned_tokens"]

    def finish(self, sent: int, aborted: int, generated: int) -> None:
        """Compare the totals with what was sent, received and watched."""
        step = self.record.scan() | self.record.step()
        worker = self.worker.scan() | self.worker.step()
        kinds = Counter(event.kind for event in self.events)
        lost_by_events = sum(e.tokens for e in self.events if e.kind == 3)
        made_by_events = sum(e.tokens for e in self.events if e.kind in (6, 7))
        lora_events, _, _ = self.worker.events(0)
        applied = sum(e.kind == 8 for e in lora_events)
        by_tier = sum(worker[f"lora_requests_{tier}"] for tier in ("gpu", "cpu", "disk"))
        preemptions = sum(v for k, v in step.items() if k.startswith("preemptions_"))
        never_scheduled = sent - kinds[2]
        self.seen["cache_resets"] = int(step["preemptions_cache_reset"])
        self.seen["by_tier"] = int(by_tier)
        for what, got, want in (
            ("busy", step["busy"], 0),
            ("finished", step["finished"], sent - aborted),
            ("aborted", step["aborted"], aborted),
            ("generated", step["generated_tokens"], generated),
            ("preemptions", preemptions, self.seen["preemptions"]),
            ("preempted_tokens", step["preempted_tokens"], self.seen["lost"]),
            ("prefill_tokens", step["prefill_tokens"], self.seen["prefill"]),
            ("recomputed_tokens", step["recomputed_tokens"], self.seen["recomputed"]),
            ("lost tokens", step["preempted_tokens"], self._accounted_for(step)),
            ("queued events", kinds[1], sent),
            ("first schedules", step["first_schedules"], sent - never_scheduled),
            ("preempted events", kinds[3], self.seen["preemptions"]),
            ("first tokens", kinds[5] >= sent - aborted, True),
            ("finished events", kinds[6], sent - aborted),
            ("aborted events", kinds[7], aborted),
            ("lost tokens by events", lost_by_events, self.seen["lost"]),
            ("generated by events", made_by_events, generated),
            ("lost events", self.seen["lost_events"], 0),
            ("disk loads", worker["lora_loads_disk"], self.adapters.seen["disk_loads"]),
            (
                "loads",
                worker["lora_loads_disk"] + worker["lora_loads_cpu"],
                self.adapters.seen["activations"],
            ),
            ("adapter events", applied, by_tier),
            *self.adapters.ends(worker),
        ):
            if got != want:
                self.mismatches.append(f"{what}: {got}, want {want}")


if __name__ == "__main__":
    outcome = main(*sys.argv[1:])
    sys.stdout.write("\n" + json.dumps(outcome) + "\n")
