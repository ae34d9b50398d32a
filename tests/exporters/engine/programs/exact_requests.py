"""Counts requests, preemptions, steps and growth from vLLM's own objects, for ``exact.py``.

Shares no code with the probe. Its wrappers lie outside the probe's.
"""

from collections import Counter
from typing import Any


def queued(scheduler: Any) -> list[Any]:
    """Return all requests that wait; releases differ in how many queues they have."""
    queues = ("waiting", "skipped_waiting", "kv_holding_waiting")
    return [request for name in queues for request in getattr(scheduler, name, ())]


class RequestsCheck:
    """Counts independently what the parts for requests say."""

    def __init__(self, scheduler: Any) -> None:
        self.scheduler = scheduler
        self.seen: Counter[str] = Counter()
        self.times: Counter[str] = Counter()  # preemptions by live request
        self.lost: dict[str, int] = {}  # of those that have not run again
        self.high_water: dict[str, int] = {}
        self.starts: dict[str, int] = {}
        self.batch = (0, 0)
        self._watch_steps(scheduler)
        self._watch_requests(scheduler)
        self._watch_blocks(scheduler.kv_cache_manager)

    def _watch_steps(self, scheduler: Any) -> None:
        schedule, update = scheduler.schedule, scheduler.update_from_output

        def watched_schedule(*args: Any, **kwargs: Any) -> Any:
            output = schedule(*args, **kwargs)
            cached = output.scheduled_cached_reqs
            self.starts = dict(zip(cached.req_ids, cached.num_computed_tokens, strict=True))
            self.starts |= {n.req_id: n.num_computed_tokens for n in output.scheduled_new_reqs}
            for request_id in set(self.lost) & set(output.num_scheduled_tokens):
                found = self.starts[request_id]
                del self.lost[request_id]
                self.seen["rehit_tokens"] += min(found, self.high_water[request_id])
                self.seen["resumed"] += 1
            return output

        def watched_update(output: Any, *args: Any, **kwargs: Any) -> Any:
            scheduled = output.num_scheduled_tokens
            self.batch = (len(scheduled), sum(scheduled.values()))
            self.seen["requests"] += len(scheduled)
            for request_id, count in scheduled.items():
                start = self.starts[request_id]
                request = scheduler.requests[request_id]
                target = max(request.num_prompt_tokens, self.high_water.get(request_id, 0))
                self.seen["decode_tokens"] += count - max(0, min(start + count, target) - start)
            return update(output, *args, **kwargs)

        scheduler.schedule, scheduler.update_from_output = watched_schedule, watched_update

    def _watch_requests(self, scheduler: Any) -> None:
        preempt, free = scheduler._preempt_request, scheduler._free_request

        def watched_preempt(request: Any, *args: Any, **kwargs: Any) -> Any:
            rid, computed = request.request_id, request.num_computed_tokens
            self.seen["repeats" if self.times[rid] else "victims"] += 1
            self.times[rid] += 1
            self.lost[rid] = computed
            self.high_water[rid] = max(computed, self.high_water.get(rid, 0))
            return preempt(request, *args, **kwargs)

        def watched_free(request: Any, *args: Any, **kwargs: Any) -> Any:
            owed = self.high_water.get(request.request_id, 0) - request.num_computed_tokens
            self.seen["abandoned_tokens"] += max(0, owed)
            self.seen["left"] += self.lost.pop(request.request_id, None) is not None
            self.times.pop(request.request_id, None)
            return free(request, *args, **kwargs)

        scheduler._preempt_request, scheduler._free_request = watched_preempt, watched_free

    def _watch_blocks(self, manager: Any) -> None:
        pool, allocate = manager.block_pool, manager.allocate_slots
        free_blocks = pool.free_blocks

        def watched_allocate(request: Any, *args: Any, **kwargs: Any) -> Any:
            free, freed = pool.get_num_free_blocks(), self.seen["freed"]
            target = max(request.num_prompt_tokens, self.high_water.get(request.request_id, 0))
            phase = "decode" if request.num_computed_tokens >= target else "prefill"
            result = allocate(request, *args, **kwargs)
            given_back = self.seen["freed"] - freed
            self.seen[phase] += free + given_back - pool.get_num_free_blocks()
            return result

        def watched_free(blocks: Any) -> Any:
            free = pool.get_num_free_blocks()
            result = free_blocks(blocks)
            self.seen["freed"] += pool.get_num_free_blocks() - free
            return result

        manager.allocate_slots, pool.free_blocks = watched_allocate, watched_free

    def truth(self, steps: int) -> dict[str, float]:
        """Return what the record must say after so many steps."""
        seen, scheduler = self.seen, self.scheduler
        preempted = [r for r in queued(scheduler) if r.status.name == "PREEMPTED"]
        return {
            "preemption_victims": seen["victims"],
            "preemption_repeats": seen["repeats"],
            "preemption_rehit_tokens": seen["rehit_tokens"],
            "preemption_abandoned_tokens": seen["abandoned_tokens"],
            "preemption_resumed": seen["resumed"],
            "preemption_left": seen["left"],
            "preemption_waiting": len(preempted),
            "preemption_most": max(self.times.values(), default=0),
            "preemption_resumption_s_count": seen["resumed"],
            "preemption_victim_age_s_count": seen["victims"] + seen["repeats"],
            "batch_requests": self.batch[0],
            "batch_tokens": self.batch[1],
            "load_requests": seen["requests"],
            "load_decode_tokens": seen["decode_tokens"],
            "load_step_s_count": steps,
            "pool0_growth_decode": seen["decode"],
            "pool0_growth_prefill": seen["prefill"],
            "pool0_growth_freed": seen["freed"],
        }

    def waiting(self, step: dict[str, float]) -> dict[str, float]:
        """Return the waiting requests by reason; they must sum to the queue's."""
        reasons = {
            name.removeprefix("waiting_"): count
            for name, count in step.items()
            if name.startswith("waiting_") and name != "waiting_oldest_s"
        }
        for reason, count in reasons.items():
            self.seen[f"waits_{reason}"] += count > 0
        return reasons
