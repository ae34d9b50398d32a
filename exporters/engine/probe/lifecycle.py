"""The probe's part for requests: follows each through the engine, and tells it as events."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from vramscope.exporters.engine.probe.growth import Growth
from vramscope.exporters.engine.probe.load import LoadMeter
from vramscope.exporters.engine.probe.preemption import PREEMPTION_REASONS, PreemptionMeter
from vramscope.exporters.engine.probe.requests import (
    PrefillMeter,
    TrackedRequest,
    ids_are_randomized,
)
from vramscope.exporters.engine.probe.slack import computed_tokens
from vramscope.exporters.engine.probe.waiting import WaitingReasons
from vramscope.exporters.engine.record import EventKind

__all__ = ["InFlight", "Lifecycle"]

InFlight = tuple[Any, int, float]
"""A schedule whose step is not complete: vLLM's SchedulerOutput, its number, when it began."""


class Lifecycle:
    """Requests of one scheduler, from queued to gone. Counters since start.

    It knows each request's past; what that means for one subject is its meter's.

    Args:
        scheduler: vLLM's.
        clock: the host's monotonic clock, seconds.
        tell: takes each event, as ``RecordWriter.add_event`` does.
        growth: of the block pools.

    Attributes:
        first_schedules: requests scheduled for the first time.
        finished: requests that left with their answer.
        aborted: requests that left without.
        cached_tokens: prompt tokens found in the prefix cache at first schedule.
        prefill: counts prefill tokens.
        preemption: counts preemptions.
        load: times steps and waits.
        waiting: says why requests wait.
    """

    scan_fields = ("generated_tokens",)

    def __init__(
        self,
        scheduler: Any,
        clock: Callable[[], float],
        tell: Callable[..., None],
        growth: Growth,
    ) -> None:
        self.first_schedules = self.finished = self.aborted = self.cached_tokens = 0
        self.prefill = PrefillMeter()
        self.preemption = PreemptionMeter()
        self.load = LoadMeter()
        self.waiting = WaitingReasons(scheduler)
        self._growth = growth
        self._scheduler = scheduler
        self._clock = clock
        self._tell = tell
        self._randomized_ids = ids_are_randomized()
        self._requests: dict[str, TrackedRequest] = {}
        self._finished_tokens = self._generated_tokens = 0

    def capabilities(self) -> dict[str, bool]:
        """Return nothing: what is seen of requests hangs on the scheduler's hooks."""
        return {}

    def scan(self, now_s: float) -> Sequence[float]:
        """Return the values of ``scan_fields``."""
        del now_s
        live = sum(request.num_output_tokens for request in self._scheduler.running)
        preempted = self.preemption.waiting.values()
        live += sum(tracked.request.num_output_tokens for tracked in preempted)
        self._generated_tokens = max(self._generated_tokens, self._finished_tokens + live)
        return (self._generated_tokens,)

    def queued(self, request: Any) -> None:
        """Take in a request that was added."""
        if request.request_id not in self._requests:
            tracked = TrackedRequest(request, self._randomized_ids, self._clock())
            self._requests[request.request_id] = tracked
            self.waiting.unscheduled[request.request_id] = tracked
            self.waiting.arrived += 1
            self._event(
                EventKind.QUEUED,
                tracked,
                tokens=request.num_prompt_tokens,
                detail=getattr(request, "max_tokens", 0) or 0,
            )

    def scheduled(self, output: Any, schedule: int, short_of_blocks: bool) -> None:
        """Take in a schedule: who runs for the first time, and who runs again.

        Args:
            output: vLLM's ``SchedulerOutput``.
            schedule: its number.
            short_of_blocks: it refused or preempted somebody for want of blocks.
        """
        tokens = output.num_scheduled_tokens
        self.waiting.scheduled(output, short_of_blocks)
        for new in output.scheduled_new_reqs:
            tracked = self._requests.get(new.req_id)
            if tracked is not None and tracked.first_scheduled_s is None:
                now = self._clock()
                tracked.first_scheduled_s = now
                self.waiting.unscheduled.pop(new.req_id, None)
                self.load.queued_for(now - tracked.queued_s)
                cached = self._begin_prefill(tracked, tokens, schedule)
                self.first_schedules += 1
                self.cached_tokens += cached
                self._event(EventKind.FIRST_SCHEDULED, tracked, tokens=cached)
        if self.preemption.waiting:
            for request_id in [rid for rid in self.preemption.waiting if rid in tokens]:
                tracked = self.preemption.waiting[request_id]
                cached = self._begin_prefill(tracked, tokens, schedule)
                self.preemption.resumed(tracked, cached, self._clock())
                self._event(EventKind.RESUMED, tracked, tokens=cached)

    def preempted(self, request: Any, reason: str) -> None:
        """Take in a preemption that is about to happen."""
        lost = computed_tokens(request)
        tracked = self._requests.get(request.request_id)
        self.preemption.preempted(tracked, lost, reason, self._clock())
        if tracked is None:
            return
        self.prefill.end(request.request_id)
        self._growth.leaves(request.request_id)
        detail = PREEMPTION_REASONS.index(reason)
        self._event(EventKind.PREEMPTED, tracked, tokens=lost, detail=detail)

    def computed(self, output: Any, schedule: int) -> None:
        """Take in a completed step, before vLLM does: a request it finishes is gone after."""
        before = self.prefill.prefill_tokens
        for tracked in self.prefill.step(output.num_scheduled_tokens, schedule):
            self._growth.decodes(tracked.request.request_id)
            if not tracked.first_token:
                tracked.first_token = True
                self._event(EventKind.FIRST_TOKEN, tracked)
        self.load.computed(output, schedule, self.prefill.prefill_tokens - before)

    def leaving(self, request: Any, in_flight: Iterable[InFlight]) -> None:
        """Take in a request that is about to be freed."""
        request_id = request.request_id
        tracked = self._requests.pop(request_id, None)
        if tracked is None:
            return
        for output, schedule, _began_s in in_flight:
            early = self.prefill.leave(request_id, output.num_scheduled_tokens, schedule)
            self.load.left_early(schedule, early)
        self.prefill.end(request_id)
        self.preemption.left(tracked)
        self.waiting.unscheduled.pop(request_id, None)
        self._growth.leaves(request_id)
        tokens = request.num_output_tokens
        self._finished_tokens += tokens
        aborted = request.status.name == "FINISHED_ABORTED"
        if aborted:
            self.aborted += 1
        else:
            self.finished += 1
        self._event(EventKind.ABORTED if aborted else EventKind.FINISHED, tracked, tokens=tokens)

    def _begin_prefill(
        self, tracked: TrackedRequest, scheduled: dict[str, int], schedule: int
    ) -> int:
        """Start the meter where the cache ends; return the tokens found in it."""
        request = tracked.request
        # schedule() has already moved the request past what this step computes.
        cached: int = max(0, request.num_computed_tokens - scheduled[request.request_id])
        self.prefill.begin(tracked, cached, schedule)
        return cached

    def _event(
        self, kind: EventKind, tracked: TrackedRequest, tokens: int = 0, detail: int = 0
    ) -> None:
        self._tell(
            tracked.hash,
            self._clock(),
            kind,
            adapter=tracked.adapter,
            tokens=int(tokens),
            detail=int(detail),
        )
