"""The probe's part for preemption: who lost what, when it ran again, and who loses again."""

from collections.abc import Sequence

from vramscope.exporters.engine.probe.histogram import Histogram
from vramscope.exporters.engine.probe.requests import TrackedRequest

__all__ = ["PREEMPTION_REASONS", "RESUMPTION_BOUNDS_S", "VICTIM_AGE_BOUNDS_S", "PreemptionMeter"]

PREEMPTION_REASONS = ("kv_exhausted", "cache_reset", "other")

# Of the histograms. Here too, since the engine's process imports no catalog; readers take them
# from the record, and a test holds the two together.
RESUMPTION_BOUNDS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
VICTIM_AGE_BOUNDS_S = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)


class PreemptionMeter:
    """Follows preempted requests until they run again or leave. Counters since start.

    Each preemption ends in a resumption, in its request leaving before, or is waiting still.
    Each lost token is found again in the cache, computed again, or abandoned by its request
    leaving, or is owed still: what a live request owes is its high-water mark less its position.

    Attributes:
        preemptions: by reason.
        lost_tokens: computed tokens thrown away.
        waiting: preempted requests that have not run again, by vLLM's id.
    """

    def __init__(self) -> None:
        self.preemptions = dict.fromkeys(PREEMPTION_REASONS, 0)
        self.lost_tokens = 0
        self.waiting: dict[str, TrackedRequest] = {}
        self._victims: dict[str, TrackedRequest] = {}  # live, and preempted at least once
        self._victims_total = self._repeats = 0
        self._rehit_tokens = self._abandoned_tokens = 0
        self._resumed = self._left = 0
        self._resumption_s = Histogram("preemption_resumption_s", RESUMPTION_BOUNDS_S)
        self._victim_age_s = Histogram("preemption_victim_age_s", VICTIM_AGE_BOUNDS_S)
        self.scan_fields = (
            "preemption_victims",
            "preemption_repeats",
            "preemption_rehit_tokens",
            "preemption_abandoned_tokens",
            "preemption_resumed",
            "preemption_left",
            "preemption_waiting",
            "preemption_most",
            *self._resumption_s.fields,
            *self._victim_age_s.fields,
        )

    def capabilities(self) -> dict[str, bool]:
        """Return nothing: it hangs on one hook of the scheduler, which says so."""
        return {}

    def scan(self, now_s: float) -> Sequence[float]:
        """Return the values of ``scan_fields``."""
        del now_s
        return [
            self._victims_total,
            self._repeats,
            self._rehit_tokens,
            self._abandoned_tokens,
            self._resumed,
            self._left,
            len(self.waiting),
            max((tracked.preemptions for tracked in self._victims.values()), default=0),
            *self._resumption_s.values(),
            *self._victim_age_s.values(),
        ]

    def preempted(
        self, tracked: TrackedRequest | None, lost_tokens: int, reason: str, now_s: float
    ) -> None:
        """Take in a preemption; of a request from before the probe only the totals."""
        self.preemptions[reason] += 1
        self.lost_tokens += lost_tokens
        if tracked is None:
            return
        if tracked.preemptions:
            self._repeats += 1
        else:
            self._victims_total += 1
        tracked.preemptions += 1
        tracked.high_water = max(tracked.high_water, lost_tokens)
        tracked.position = 0
        tracked.preempted_s = now_s
        request_id = tracked.request.request_id
        self.waiting[request_id] = self._victims[request_id] = tracked
        if tracked.first_scheduled_s is not None:
            self._victim_age_s.observe(now_s - tracked.first_scheduled_s)

    def resumed(self, tracked: TrackedRequest, cached_tokens: int, now_s: float) -> None:
        """Take in that a preempted request runs again, with so many tokens from the cache."""
        del self.waiting[tracked.request.request_id]
        self._resumed += 1
        self._rehit_tokens += min(cached_tokens, tracked.high_water)
        self._resumption_s.observe(now_s - tracked.preempted_s)

    def left(self, tracked: TrackedRequest) -> None:
        """Take in that a request left the engine, waiting or not."""
        request_id = tracked.request.request_id
        if self._victims.pop(request_id, None) is not None:
            self._abandoned_tokens += max(0, tracked.high_water - tracked.position)
        if self.waiting.pop(request_id, None) is not None:
            self._left += 1
