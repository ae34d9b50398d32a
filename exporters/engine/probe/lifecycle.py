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
        growth: of the block pools.

    Attributes:
        tell: takes each event, as ``RecordWriter.add_event`` does; set it before the first.
        changed: whether a request has come, moved or gone since this was last set to False.
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
        growth: Growth,
    ) -> None:
        self.tell: Callable[..., None]
        self.changed = True
        self.first_schedules = self.finished = self.aborted = self.cached_tokens = 0
        self.prefill = PrefillMeter()
        self.preemption = PreemptionMeter()
        self.load = LoadMeter(self.prefill)
        self.waiting = WaitingReasons(scheduler)
        self._growth = growth
        self._scheduler = scheduler
        self._clock = clock
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

    def step(self) -> list[float]:
        """Return the values of a step that hang on requests."""
        prefill, preemption = self.prefill, self.preemption
        return [
            self.first_schedules,
            self.finished,
            self.aborted,
            self.cached_tokens,
            prefill.prefill_tokens,
            prefill.recomputed_tokens,
            preemption.lost_tokens,
            *preemption.preemptions.values(),
        ]

    def queued(self, request: Any, schedule: int) -> None:
        """Take in a request that was added after so many schedules."""
        self.changed = True
        request_id = request.request_id
        if request_id not in self._requests:
            now = self._clock()
            tracked = TrackedRequest(request, self._randomized_ids, now, schedule)
            self._requests[request_id] = tracked
            self.waiting.unscheduled[request_id] = tracked
            most = getattr(request, "max_tokens", 0) or 0
            self._event(EventKind.QUEUED, tracked, now, request.num_prompt_tokens, most)

    def scheduled(self, output: Any, schedule: int) -> None:
        """Take in a schedule: who runs for the first time, and who runs again.

        Args:
            output: vLLM's ``SchedulerOutput``.
            schedule: its number.
        """
        tokens = output.num_scheduled_tokens
        now = self._clock()
        for new in output.scheduled_new_reqs:
            tracked = self._requests.get(new.req_id)
            if tracked is not None and tracked.first_scheduled_s is None:
                self.changed = True
                tracked.first_scheduled_s = now
                self.waiting.unscheduled.pop(new.req_id, None)
                self.load.queued_for(now - tracked.queued_s)
                cached = self._begin_prefill(tracked, tokens, schedule)
                self.first_schedules += 1
                self.cached_tokens += cached
                self._event(EventKind.FIRST_SCHEDULED, tracked, now, cached)
        waiting = self.preemption.waiting
        for request_id in [rid for rid in waiting if rid in tokens] if waiting else ():
            self.changed = True
            tracked = waiting[request_id]
            cached = self._begin_prefill(tracked, tokens, schedule)
            self.preemption.resumed(tracked, cached, now)
            self._event(EventKind.RESUMED, tracked, now, cached)

    def preempted(self, request: Any, reason: str) -> None:
        """Take in a preemption that is about to happen."""
        self.changed = True
        lost = computed_tokens(request)
        now = self._clock()
        tracked = self._requests.get(request.request_id)
        self.preemption.preempted(tracked, lost, reason, now)
        if tracked is None:
            return
        self.prefill.end(request.request_id)
        self._growth.leaves(request.request_id)
        detail = PREEMPTION_REASONS.index(reason)
        self._event(EventKind.PREEMPTED, tracked, now, lost, detail)

    def computed(self, output: Any, schedule: int) -> None:
        """Take in a completed step with prefill, before vLLM does."""
        self.changed = True
        for tracked in self.prefill.step(output.num_scheduled_tokens, schedule):
            self._growth.decodes(tracked.request.request_id)
            if not tracked.first_token:
                tracked.first_token = True
                self._event(EventKind.FIRST_TOKEN, tracked, self._clock())

    def leaving(self, request: Any, in_flight: Iterable[InFlight]) -> None:
        """Take in a request that is about to be freed."""
        self.changed = True
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
        kind = EventKind.ABORTED if aborted else EventKind.FINISHED
        self._event(kind, tracked, self._clock(), tokens)

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
        self, kind: EventKind, tracked: TrackedRequest, now: float, tokens: int = 0, detail: int = 0
    ) -> None:
        self.tell(tracked.hash, now, kind, 0, tracked.adapter, int(tokens), int(detail))
