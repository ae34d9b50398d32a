"""Follows each request through the engine: what it computed, lost and computed again."""

import os
import re
from typing import Any

from vramscope.exporters.engine.record import request_hash

__all__ = ["PrefillMeter", "TrackedRequest", "external_id", "ids_are_randomized"]

# vLLM appends eight characters of its own to the id its caller chose.
_SUFFIX = re.compile(r"-[0-9a-f]{8}$")


def external_id(request_id: str, randomized: bool = True) -> str:
    """Return the id the request's caller knows.

    >>> external_id("cmpl-7f3a-0-1b2c3d4e")
    'cmpl-7f3a-0'
    """
    return _SUFFIX.sub("", request_id) if randomized else request_id


def ids_are_randomized() -> bool:
    """Whether this vLLM appends its own characters; it can be told not to."""
    from vllm.v1.engine import EngineCoreRequest

    fields = getattr(EngineCoreRequest, "__struct_fields__", ())
    told_not_to = os.environ.get("VLLM_DISABLE_REQUEST_ID_RANDOMIZATION", "0") not in ("", "0")
    return "external_req_id" in fields and not told_not_to


class TrackedRequest:
    """One live request.

    Attributes:
        request: vLLM's own object.
        hash: 64-bit name, from the external id.
        adapter: vLLM's number of its adapter, 0 without.
        queued_s: when it was added.
        queued_after: the number of schedules before it was added.
        first_scheduled_s: when it was scheduled for the first time; None before.
        preemptions: how often it was preempted.
        preempted_s: when it was preempted last.
        first_token: its first token has been made.
        high_water: most tokens it had computed when it was preempted.
        position: tokens there in the current prefill; 0 while preempted.
        target: where the current prefill ends.
        since: the schedule in which the current prefill began.
    """

    __slots__ = (
        "adapter",
        "first_scheduled_s",
        "first_token",
        "hash",
        "high_water",
        "position",
        "preempted_s",
        "preemptions",
        "queued_after",
        "queued_s",
        "request",
        "since",
        "target",
    )

    def __init__(
        self, request: Any, randomized: bool, now_s: float = 0.0, schedules: int = 0
    ) -> None:
        lora = request.lora_request
        self.request = request
        self.hash = request_hash(external_id(request.request_id, randomized))
        self.adapter: int = lora.lora_int_id if lora is not None else 0
        self.queued_s = now_s
        self.queued_after = schedules
        self.first_scheduled_s: float | None = None
        self.preemptions = 0
        self.preempted_s = 0.0
        self.first_token = False
        self.high_water = 0
        self.position = 0
        self.target = 0
        self.since = 0


class PrefillMeter:
    """Counts prefill tokens as steps complete, and which of them were computed before.

    A token is prefill below the prompt's end or below the request's high-water mark. Only
    requests in prefill are looked at in a step; decoding ones cost nothing.

    Attributes:
        prefill_tokens: computed, prefix-cache hits excluded.
        recomputed_tokens: those below an earlier high-water mark.
        in_prefill: requests whose prefill is not complete.
    """

    def __init__(self) -> None:
        self.prefill_tokens = 0
        self.recomputed_tokens = 0
        self.in_prefill: dict[str, TrackedRequest] = {}

    def begin(self, tracked: TrackedRequest, cached_tokens: int, schedule: int) -> None:
        """Start a prefill at the first token not found in the cache."""
        tracked.position = cached_tokens
        tracked.target = max(int(tracked.request.num_prompt_tokens), tracked.high_water)
        tracked.since = schedule
        self.in_prefill[tracked.request.request_id] = tracked

    def end(self, request_id: str) -> None:
        """Forget a request that was preempted or left."""
        self.in_prefill.pop(request_id, None)

    def step(self, scheduled_tokens: dict[str, int], schedule: int) -> list[TrackedRequest]:
        """Account for a completed step.

        Args:
            scheduled_tokens: tokens computed by request id.
            schedule: which schedule this step is of.

        Returns:
            The requests whose prefill this step completed.
        """
        done = [
            tracked
            for request_id, tracked in self.in_prefill.items()
            if self._advance(tracked, scheduled_tokens.get(request_id, 0), schedule)
        ]
        for tracked in done:
            del self.in_prefill[tracked.request.request_id]
        return done

    def leave(self, request_id: str, scheduled_tokens: dict[str, int], schedule: int) -> int:
        """Account for a step in flight when its request leaves: it is computed all the same.

        Returns:
            Its prefill tokens, which this counted before the step is complete.
        """
        tracked = self.in_prefill.get(request_id)
        if tracked is None:
            return 0
        before = self.prefill_tokens
        self._advance(tracked, scheduled_tokens.get(request_id, 0), schedule)
        return self.prefill_tokens - before

    def _advance(self, tracked: TrackedRequest, tokens: int, schedule: int) -> bool:
        """Move a prefill on; return whether it is complete."""
        if schedule < tracked.since:
            return False  # of a prefill that a preemption cut: lost, and counted as lost
        before = tracked.position
        after = before + tokens
        tracked.position = after
        self.prefill_tokens += max(0, min(after, tracked.target) - before)
        self.recomputed_tokens += max(0, min(after, tracked.high_water) - before)
        return after >= tracked.target
