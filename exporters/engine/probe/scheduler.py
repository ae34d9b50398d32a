"""The probe of an EngineCore: follows its scheduler and writes the engine's record."""

import math
import os
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from vramscope.exporters.engine import rundir
from vramscope.exporters.engine.probe import identity
from vramscope.exporters.engine.probe.blocks import PoolTracker
from vramscope.exporters.engine.probe.hooks import Guard, hook
from vramscope.exporters.engine.probe.requests import (
    PREEMPTION_REASONS,
    PrefillMeter,
    TrackedRequest,
    ids_are_randomized,
)
from vramscope.exporters.engine.probe.slack import PoolScan, computed_tokens, scan_pool
from vramscope.exporters.engine.record import EventKind
from vramscope.exporters.engine.writer import RecordWriter

__all__ = ["SchedulerProbe"]

SCAN_PERIOD_S = 0.15
RESYNC_PERIOD_S = 30.0
STEP_TIMES = 256

STEP_FIELDS = (
    "time_s",
    "busy",
    "events",
    "steps",
    "step_p99_s",
    "running",
    "waiting",
    "first_schedules",
    "finished",
    "aborted",
    "cached_tokens",
    "prefill_tokens",
    "recomputed_tokens",
    "generated_tokens",
    "preempted_tokens",
    *(f"preemptions_{reason}" for reason in PREEMPTION_REASONS),
    "scan_time_s",
)
POOL_FIELDS = (
    "blocks",
    "live",
    "slack",
    "lookahead",
    "held",
    "evictable",
    "clean",
    "reserved",
    "free_now",
    "evictable_now",
    "evictions",
    "resurrections",
    "drift",
)


class SchedulerProbe:
    """Attached to one ``Scheduler``; every hook runs under ``guard``."""

    def __init__(self, scheduler: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self.guard = Guard(self._switched_off)
        self._scheduler = scheduler
        self._clock = clock
        self._scan_period_s = float(os.environ.get("VRAMSCOPE_SCAN_PERIOD_S", SCAN_PERIOD_S))
        self._managers = scheduler.kv_cache_manager.coordinator.single_type_managers
        pools = list({id(m.block_pool): m.block_pool for m in self._managers}.values())
        self._pools = [PoolTracker(pool, self.guard) for pool in pools]
        self._pool_managers = [
            [manager for manager in self._managers if manager.block_pool is pool] for pool in pools
        ]
        self._randomized_ids = ids_are_randomized()
        self._requests: dict[str, TrackedRequest] = {}
        self._preempted: dict[str, TrackedRequest] = {}
        self._prefill = PrefillMeter()
        self._in_flight: deque[tuple[Any, int, float]] = deque(maxlen=64)
        self._step_times_s: deque[float] = deque([0.0], maxlen=STEP_TIMES)
        self._schedules = 0
        self._preempting_for: str | None = None
        self._first_schedules = self._finished = self._aborted = self._cached_tokens = 0
        self._preempted_tokens = 0
        self._preemptions = dict.fromkeys(PREEMPTION_REASONS, 0)
        self._steps = self._finished_tokens = self._generated_tokens = 0
        self._step_p99_s = 0.0
        self._busy = False
        self._scans = [PoolScan(0, 0, 0, 0)] * len(pools)
        self._scanned: list[tuple[int, int, int]] = [(0, 0, 0)] * len(pools)
        self._scan_time_s = self._resync_time_s = 0.0
        config = scheduler.vllm_config
        self._writer = RecordWriter(
            rundir.run_dir(),
            identity.record_name(config, "engine"),
            identity.engine_header(config, scheduler.kv_cache_config, pools, self._managers),
            [*STEP_FIELDS, *(f"pool{i}_{f}" for i in range(len(pools)) for f in POOL_FIELDS)],
            group=os.environ.get("VRAMSCOPE_GROUP"),
        )
        self._capabilities = self._attach()
        self._scan(self._clock())
        self._writer.write_state({"capabilities": self._capabilities, "error": None})
        self._write(self._clock())

    @property
    def record(self) -> str:
        """Path of the record."""
        return str(self._writer.path)

    def _attach(self) -> dict[str, bool]:
        """Hook what this release has; return what could be."""
        scheduler, guard = self._scheduler, self.guard
        steps = hook(
            scheduler, "schedule", guard, before=self._before_schedule, after=self._after_schedule
        ) and hook(
            scheduler,
            "update_from_output",
            guard,
            before=self._before_update,
            after=self._after_update,
        )
        hook(
            scheduler,
            "reset_prefix_cache",
            guard,
            before=self._before_reset,
            after=self._after_reset,
        )
        requests = hook(scheduler, "add_request", guard, after=self._after_add) and hook(
            scheduler, "_free_request", guard, before=self._before_free
        )
        hook(scheduler, "shutdown", guard, before=self._before_shutdown)
        preemption = hook(scheduler, "_preempt_request", guard, before=self._before_preempt)
        return {
            "steps": steps,
            "requests": requests,
            "preemption": preemption,
            "prefill": steps and requests and preemption,
            "blocks": all(pool.attached for pool in self._pools),
        }

    # Hooks, in the order of a request's life.

    def _after_add(self, _: Any, request: Any) -> None:
        if request.request_id not in self._requests:
            tracked = TrackedRequest(request, self._randomized_ids)
            self._requests[request.request_id] = tracked
            self._event(
                EventKind.QUEUED,
                tracked,
                tokens=request.num_prompt_tokens,
                detail=getattr(request, "max_tokens", 0) or 0,
            )
        if not self._busy:
            self._busy = True
            self._write(self._clock())

    def _before_schedule(self, *_: Any, **__: Any) -> None:
        self._preempting_for = "kv_exhausted"

    def _after_schedule(self, output: Any, *_: Any, **__: Any) -> None:
        self._preempting_for = None
        self._schedules += 1
        self._in_flight.append((output, self._schedules, self._clock()))
        scheduled = output.num_scheduled_tokens
        for new in output.scheduled_new_reqs:
            tracked = self._requests.get(new.req_id)
            if tracked is not None and not tracked.scheduled:
                tracked.scheduled = True
                cached = self._begin_prefill(tracked, scheduled)
                self._first_schedules += 1
                self._cached_tokens += cached
                self._event(EventKind.FIRST_SCHEDULED, tracked, tokens=cached)
        if self._preempted:
            for request_id in [rid for rid in self._preempted if rid in scheduled]:
                tracked = self._preempted.pop(request_id)
                cached = self._begin_prefill(tracked, scheduled)
                self._event(EventKind.RESUMED, tracked, tokens=cached)

    def _begin_prefill(self, tracked: TrackedRequest, scheduled: dict[str, int]) -> int:
        """Start the meter where the cache ends; return the tokens found in it."""
        request = tracked.request
        # schedule() has already moved the request past what this step computes.
        cached: int = max(0, request.num_computed_tokens - scheduled[request.request_id])
        self._prefill.begin(tracked, cached, self._schedules)
        return cached

    def _before_preempt(self, request: Any, *_: Any, **__: Any) -> None:
        lost = computed_tokens(request)
        reason = self._preempting_for or "other"
        self._preemptions[reason] += 1
        self._preempted_tokens += lost
        tracked = self._requests.get(request.request_id)
        if tracked is None:
            return
        self._prefill.end(request.request_id)
        tracked.high_water = max(tracked.high_water, lost)
        self._preempted[request.request_id] = tracked
        detail = PREEMPTION_REASONS.index(reason)
        self._event(EventKind.PREEMPTED, tracked, tokens=lost, detail=detail)

    def _before_reset(self, *_: Any, **__: Any) -> None:
        self._preempting_for = "cache_reset"

    def _after_reset(self, *_: Any, **__: Any) -> None:
        self._preempting_for = None

    def _before_free(self, request: Any, *_: Any, **__: Any) -> None:
        tracked = self._requests.pop(request.request_id, None)
        if tracked is None:
            return
        for output, schedule, _started_s in self._in_flight:
            self._prefill.leave(request.request_id, output.num_scheduled_tokens, schedule)
        self._prefill.end(request.request_id)
        self._preempted.pop(request.request_id, None)
        tokens = request.num_output_tokens
        self._finished_tokens += tokens
        aborted = request.status.name == "FINISHED_ABORTED"
        if aborted:
            self._aborted += 1
        else:
            self._finished += 1
        self._event(EventKind.ABORTED if aborted else EventKind.FINISHED, tracked, tokens=tokens)

    def _before_update(self, output: Any, *_: Any, **__: Any) -> None:
        # Before, since a request that the update finishes is gone after it.
        schedule, started_s = self._schedules, self._clock()
        while self._in_flight:
            scheduled, schedule, started_s = self._in_flight.popleft()
            if scheduled is output:
                break
        self._step_times_s.append(self._clock() - started_s)
        for tracked in self._prefill.step(output.num_scheduled_tokens, schedule):
            if not tracked.first_token:
                tracked.first_token = True
                self._event(EventKind.FIRST_TOKEN, tracked)

    def _after_update(self, *_: Any, **__: Any) -> None:
        now = self._clock()
        self._steps += 1
        self._busy = self._scheduler.get_num_unfinished_requests() > 0
        if now - self._scan_time_s >= self._scan_period_s or not self._busy:
            self._scan(now)
        self._write(now)

    def _before_shutdown(self, *_: Any, **__: Any) -> None:
        # Here and not at exit only: vLLM's API server often ends the process in the middle of it.
        self.guard.stop()
        self._writer.close()

    # What the record says.

    def _scan(self, now: float) -> None:
        """Take the slow numbers, all of one moment."""
        scheduler = self._scheduler
        if now - self._resync_time_s >= RESYNC_PERIOD_S:
            for pool in self._pools:
                pool.resync()
            self._resync_time_s = now
        deferred = [blocks for _, blocks in getattr(scheduler, "deferred_frees", ())]
        for index, pool in enumerate(self._pools):
            self._scans[index] = scan_pool(
                self._pool_managers[index],
                scheduler.running,
                deferred,
                pool.referenced,
                pool.extra_references,
                getattr(scheduler, "num_lookahead_tokens", 0),
            )
            self._scanned[index] = (
                pool.evictable,
                pool.free - pool.evictable,
                self._reserved(pool),
            )
        live = sum(request.num_output_tokens for request in scheduler.running)
        live += sum(tracked.request.num_output_tokens for tracked in self._preempted.values())
        self._generated_tokens = max(self._generated_tokens, self._finished_tokens + live)
        times = sorted(self._step_times_s)
        self._step_p99_s = times[math.ceil(len(times) * 0.99) - 1]
        self._scan_time_s = now

    def _reserved(self, pool: PoolTracker) -> int:
        """Return R: free blocks that a new request may not take."""
        scheduler = self._scheduler
        watermark = getattr(scheduler.kv_cache_manager, "watermark_blocks", 0)
        reserved = watermark if scheduler.running else 0
        in_flight = getattr(scheduler, "_inflight_prefill_reserved_blocks", None)
        if in_flight is not None:
            reserved += in_flight()
        return int(min(reserved, pool.free))

    def _write(self, now: float) -> None:
        running, waiting = self._scheduler.get_request_counts()
        values = [
            now,
            self._busy,
            self._writer.events,
            self._steps,
            self._step_p99_s,
            running,
            waiting,
            self._first_schedules,
            self._finished,
            self._aborted,
            self._cached_tokens,
            self._prefill.prefill_tokens,
            self._prefill.recomputed_tokens,
            self._generated_tokens,
            self._preempted_tokens,
            *self._preemptions.values(),
            self._scan_time_s,
        ]
        for pool, scan, scanned in zip(self._pools, self._scans, self._scanned, strict=True):
            values += [
                pool.blocks,
                *scan,
                *scanned,
                pool.free,
                pool.evictable,
                pool.evictions,
                pool.resurrections,
                pool.drift,
            ]
        self._writer.write_step(values)

    def _event(
        self, kind: EventKind, tracked: TrackedRequest, tokens: int = 0, detail: int = 0
    ) -> None:
        self._writer.add_event(
            tracked.hash,
            self._clock(),
            kind,
            adapter=tracked.adapter,
            tokens=int(tokens),
            detail=int(detail),
        )

    def _switched_off(self, error: str) -> None:
        off = dict.fromkeys(self._capabilities, False)
        self._writer.write_state({"capabilities": off, "error": error})
