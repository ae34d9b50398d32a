"""The probe's part for the queue: why requests wait, and since when."""

from collections.abc import Sequence
from itertools import islice, takewhile
from typing import Any

from vramscope.exporters.engine.probe.requests import TrackedRequest

__all__ = ["WAITING_REASONS", "WaitingReasons"]

WAITING_REASONS = (
    "kv_blocks",
    "lora_slot",
    "remote_kv",
    "grammar",
    "batch_full",
    "token_budget",
    "paused",
    "arrived",
    "other",
)
Schedule = tuple[int, int, bool]
"""Its number, its tokens, and whether it was short of blocks: it refused or preempted somebody for
want of them."""
BLOCKED = {
    "WAITING_FOR_REMOTE_KVS": "remote_kv",
    "WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR": "grammar",
    "WAITING_FOR_FSM": "grammar",  # its name before 0.19
}
MOST_LOOKED_AT = 256
"""Of the requests that vLLM set aside in a scan; the rest is taken to be like them."""


class WaitingReasons:
    """Says by what each waiting request is kept from running. Looks at queues only at a scan.

    vLLM takes requests from the head of its queue until one doesn't fit, and sets aside those
    that something of their own keeps waiting. So those have each their own reason; all behind
    the one that didn't fit have its reason.
    """

    def __init__(self, scheduler: Any) -> None:
        self.schedule: Schedule = (0, 0, False)
        """The last one."""
        self.unscheduled: dict[str, TrackedRequest] = {}
        """Requests never scheduled yet, oldest first."""
        self._scheduler = scheduler
        self.scan_fields = (
            *(f"waiting_{reason}" for reason in WAITING_REASONS),
            "waiting_oldest_s",
        )

    def capabilities(self) -> dict[str, bool]:
        """Return whether the limits that end a schedule are known here."""
        scheduler = self._scheduler
        return {
            "waiting_reasons": hasattr(scheduler, "max_num_scheduled_tokens")
            and _most_running(scheduler) is not None
        }

    def scan(self, now_s: float) -> Sequence[float]:
        """Return the values of ``scan_fields``."""
        scheduler = self._scheduler
        waiting = scheduler.get_request_counts()[1]
        counts = dict.fromkeys(WAITING_REASONS, 0)
        aside, looked_at = _set_aside(scheduler)
        with_slot = _adapters_with_slot(scheduler) if looked_at else None
        for request in looked_at:
            reason = _own_reason(request, with_slot)
            if reason is not None:
                counts[reason] += 1
        if aside > len(looked_at):
            for reason, count in counts.items():
                counts[reason] = count * aside // len(looked_at)
        counts["arrived"] = min(self._arrived(), waiting - sum(counts.values()))
        counts[self._common_reason()] += waiting - sum(counts.values())
        oldest = next(iter(self.unscheduled.values()), None)
        return [*counts.values(), 0.0 if oldest is None else now_s - oldest.queued_s]

    def _arrived(self) -> int:
        """Return how many requests were added since the last schedule: it has not seen them."""
        number, _, _ = self.schedule
        newest = reversed(self.unscheduled.values())
        return sum(1 for _ in takewhile(lambda one: one.queued_after == number, newest))

    def _common_reason(self) -> str:
        """Return what ended the last schedule for all that it didn't reach."""
        scheduler = self._scheduler
        _, batch_tokens, short_of_blocks = self.schedule
        paused = getattr(scheduler, "_pause_state", None)
        if paused is not None and paused.name != "UNPAUSED":
            return "paused"
        if short_of_blocks:
            return "kv_blocks"
        most = _most_running(scheduler)
        if most is not None and len(scheduler.running) >= most:
            return "batch_full"
        budget = getattr(scheduler, "max_num_scheduled_tokens", None)
        if budget is not None and batch_tokens >= budget:
            return "token_budget"
        return "other"


def _most_running(scheduler: Any) -> int | None:
    """Return how many requests may run at once; None where its name is another."""
    for name in ("max_num_active_reqs", "max_num_running_reqs"):
        if hasattr(scheduler, name):
            return int(getattr(scheduler, name))
    return None


def _own_reason(request: Any, with_slot: set[int] | None) -> str | None:
    """Return what keeps this request waiting and not those behind it; None when nothing does.

    vLLM counts a request among those set aside until it runs, also when what it was set aside
    for is over.
    """
    blocked = BLOCKED.get(request.status.name)
    if blocked is not None:
        return blocked
    lora = request.lora_request
    without_slot = with_slot is not None and lora is not None and lora.lora_int_id not in with_slot
    return "lora_slot" if without_slot else None


def _adapters_with_slot(scheduler: Any) -> set[int] | None:
    """Return the adapters that run, when no other may; None while there is a slot."""
    config = getattr(scheduler, "lora_config", None)
    if config is None:
        return None
    loras = [one.lora_request for one in scheduler.running if one.lora_request is not None]
    adapters = {lora.lora_int_id for lora in loras}
    return adapters if len(adapters) >= config.max_loras else None


def _set_aside(scheduler: Any) -> tuple[int, Sequence[Any]]:
    """Return how many waiting requests may have a reason of their own, and some or all of them."""
    for name in ("deferred_waiting", "skipped_waiting"):
        aside = getattr(scheduler, name, None)
        if aside is not None:
            return len(aside), list(islice(aside, MOST_LOOKED_AT))
    # Before 0.18 they go back into the queue, at its head.
    head = list(islice(scheduler.waiting, MOST_LOOKED_AT))
    return len(head), head
