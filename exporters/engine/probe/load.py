"""The probe's part for load: how long steps take, what they compute, how long requests wait."""

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

from vramscope.exporters.engine.probe.histogram import Histogram
from vramscope.exporters.engine.probe.requests import PrefillMeter

__all__ = ["QUEUE_BOUNDS_S", "STEP_BOUNDS_S", "LoadMeter"]

# Of the histograms. Here too, since the engine's process imports no catalog; readers take them
# from the record, and a test holds the two together.
STEP_BOUNDS_S = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
QUEUE_BOUNDS_S = (
    *(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0),
)
LAST_STEPS = 256


class LoadMeter:
    """Times and sizes of completed steps. Counters since start.

    A step's time runs from when its schedule began, or from the end of the step before if that
    is later (with asynchronous scheduling steps overlap), to its end. So the times add up to the
    time the engine was at work.

    Args:
        prefill: of the same requests; what it does not count is decode.

    Attributes:
        steps: completed.
        batch_requests: requests of the last step.
        batch_tokens: tokens of the last step.
    """

    def __init__(self, prefill: PrefillMeter) -> None:
        self.steps = self.batch_requests = self.batch_tokens = 0
        self._requests = self._tokens = 0
        self._prefill = prefill
        self._early_tokens: dict[int, int] = {}
        self._ended_s = 0.0
        self._new_s: list[float] = []
        self._last_s: deque[float] = deque([0.0], maxlen=LAST_STEPS)
        self._step_s = Histogram("load_step_s", STEP_BOUNDS_S)
        self._queue_s = Histogram("load_queue_s", QUEUE_BOUNDS_S)
        self.scan_fields = (
            "step_p99_s",
            "load_requests",
            "load_decode_tokens",
            *self._step_s.fields,
            *self._queue_s.fields,
        )

    def capabilities(self) -> dict[str, bool]:
        """Return nothing: it hangs on the scheduler's hooks for steps."""
        return {}

    def scan(self, now_s: float) -> Sequence[float]:
        """Return the values of ``scan_fields``."""
        del now_s
        new_s, self._new_s = self._new_s, []
        for seconds in new_s:
            self._step_s.observe(seconds)
        self._last_s.extend(new_s)
        last_s = sorted(self._last_s)
        early = sum(self._early_tokens.values())
        return [
            last_s[math.ceil(len(last_s) * 0.99) - 1],
            self._requests,
            self._tokens - (self._prefill.prefill_tokens - early),
            *self._step_s.values(),
            *self._queue_s.values(),
        ]

    def queued_for(self, seconds: float) -> None:
        """Take in how long a request waited for its first schedule."""
        self._queue_s.observe(seconds)

    def left_early(self, schedule: int, prefill_tokens: int) -> None:
        """Take in prefill tokens of a step in flight that are counted already."""
        if prefill_tokens:
            self._early_tokens[schedule] = self._early_tokens.get(schedule, 0) + prefill_tokens

    def computed(self, output: Any, schedule: int, began_s: float, now_s: float) -> None:
        """Take in a step that is complete now.

        What this does at each step is little: the rest is the scan's.

        Args:
            output: vLLM's ``SchedulerOutput``.
            schedule: its number.
            began_s: when it began to schedule.
            now_s: by the same clock.
        """
        self.steps += 1
        self.batch_requests = requests = len(output.num_scheduled_tokens)
        self.batch_tokens = tokens = output.total_num_scheduled_tokens
        self._requests += requests
        self._tokens += tokens
        ended_s = self._ended_s
        self._new_s.append(now_s - (max(ended_s, began_s)))
        self._ended_s = now_s
        if self._early_tokens:
            self._early_tokens.pop(schedule, None)
