"""The probe's part for the queue: why requests wait, and since when."""

from collections.abc import Iterable, Sequence
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
        self.arrived = 0
        """Requests added since the last schedule: it has not seen them."""
        self.preempting = False
        """Whether the last schedule preempted for want of blocks."""
        self.unscheduled: dict[str, TrackedRequest] = {}
        """Requests never scheduled yet, oldest first."""
        self._scheduler = scheduler
        self._batch_tokens = 0
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

    def scheduled(self, output: Any, preempting: bool) -> None:
        """Take in a schedule."""
        self.arrived = 0
        self.preempting = preempting
        self._batch_tokens = output.total_num_scheduled_tokens

    def scan(self, now_s: float) -> Sequence[float]:
        """Return the values of ``scan_fields``."""
        scheduler = self._scheduler
        waiting = scheduler.get_request_counts()[1]
        counts = dict.fromkeys(WAITING_REASONS, 0)
        aside, looked_at = _set_aside(scheduler)
        for request in looked_at:
            counts[self._own_reason(request)] += 1
        seen = sum(counts.values())
        if aside > seen:
            for reason, count in counts.items():
                counts[reason] = count * aside // seen
        arrived = min(self.arrived, waiting - aside)
        counts["arrived"] = arrived
        counts[self._common_reason()] += waiting - sum(counts.values())
        oldest = next(iter(self.unscheduled.values()), None)
        return [*counts.values(), 0.0 if oldest is None else now_s - oldest.queued_s]

    def _own_reason(self, request: Any) -> str:
        """Return what keeps a request waiting that was set aside."""
        blocked = BLOCKED.get(request.status.name)
        if blocked is not None:
            return blocked
        return "lora_slot" if request.lora_request is not None else "other"

    def _common_reason(self) -> str:
        """Return what ended the last schedule for all that it didn't reach."""
        scheduler = self._scheduler
        paused = getattr(scheduler, "_pause_state", None)
        if paused is not None and paused.name != "UNPAUSED":
            return "paused"
        if self.preempting:
            return "kv_blocks"
        most = _most_running(scheduler)
        if most is not None and len(scheduler.running) >= most:
            return "batch_full"
        budget = getattr(scheduler, "max_num_scheduled_tokens", None)
        if budget is not None and self._batch_tokens >= budget:
            return "token_budget"
        return "kv_blocks" if self._head_is_too_big() else "other"

    def _head_is_too_big(self) -> bool:
        """Whether the whole head of the queue finds no room."""
        scheduler = self._scheduler
        head = next(iter(scheduler.waiting), None)
        if head is None:
            return False
        manager = scheduler.kv_cache_manager
        pool = manager.block_pool
        need = sum(
            -(-head.num_tokens // one.block_size)
            for one in manager.coordinator.single_type_managers
            if one.block_pool is pool
        )
        kept = getattr(manager, "watermark_blocks", 0) if scheduler.running else 0
        return bool(need > pool.get_num_free_blocks() - kept)


def _most_running(scheduler: Any) -> int | None:
    """Return how many requests may run at once; None where its name is another."""
    for name in ("max_num_active_reqs", "max_num_running_reqs"):
        if hasattr(scheduler, name):
            return int(getattr(scheduler, name))
    return None


def _set_aside(scheduler: Any) -> tuple[int, Iterable[Any]]:
    """Return how many waiting requests have a reason of their own, and some or all of them."""
    for name in ("deferred_waiting", "skipped_waiting"):
        aside = getattr(scheduler, name, None)
        if aside is not None:
            return len(aside), [one for one, _ in zip(aside, range(MOST_LOOKED_AT), strict=False)]
    # Before 0.18 they go back into the queue: look at its head for those that must have been.
    head = [one for one, _ in zip(scheduler.waiting, range(MOST_LOOKED_AT), strict=False)]
    with_adapter = [one for one in scheduler.running if one.lora_request is not None]
    adapters = {one.lora_request.lora_int_id for one in with_adapter}
    config = getattr(scheduler, "lora_config", None)
    full = config is not None and len(adapters) >= config.max_loras
    aside = [
        one
        for one in head
        if one.status.name in BLOCKED
        or (full and one.lora_request and one.lora_request.lora_int_id not in adapters)
    ]
    return len(aside), aside
