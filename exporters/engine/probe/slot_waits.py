"""The probe's part for adapter slots: which requests wait because all slots are taken."""

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["SlotWaits"]


class _Request:
    __slots__ = ("adapter", "counted", "running")

    def __init__(self, adapter: int) -> None:
        self.adapter = adapter
        self.counted = False
        self.running = False


class SlotWaits:
    """Queued requests whose adapter has no slot, as of each schedule.

    A step may use ``max_loras`` adapters. A queued request is *held* when, after a schedule,
    the running requests use that many and its adapter is none of them: then vLLM could not have
    admitted it, whatever else it waits for. Work is by request that queues, starts or leaves,
    not by request and step.

    Args:
        slots: ``max_loras``.
    """

    scan_fields = ("lora_slot_waits", "lora_slot_wait_s", "lora_slot_waiting")

    def __init__(self, slots: int) -> None:
        self.waits = 0
        self.wait_s = 0.0
        self._slots = slots
        self._requests: dict[str, _Request] = {}
        self._preempted: set[str] = set()
        self._running: dict[int, int] = {}  # running requests by adapter
        # Queued requests by adapter: not held yet, and held since when.
        self._queued: dict[int, set[str]] = {}
        self._held: dict[int, dict[str, float]] = {}

    def capabilities(self) -> dict[str, bool]:
        """Return nothing: what is seen of requests hangs on the scheduler's hooks."""
        return {}

    def scan(self, now_s: float) -> Sequence[float]:
        """Return the values of ``scan_fields``."""
        del now_s
        waiting = 0
        if len(self._running) >= self._slots:
            waiting = sum(len(ids) for a, ids in self._held.items() if a not in self._running)
        return (self.waits, self.wait_s, waiting)

    def queued(self, request: Any) -> None:
        """Take in a request that was added."""
        lora = request.lora_request
        if lora is not None and request.request_id not in self._requests:
            self._requests[request.request_id] = _Request(lora.lora_int_id)
            self._queued.setdefault(lora.lora_int_id, set()).add(request.request_id)

    def scheduled(self, output: Any, now_s: float) -> None:
        """Take in a schedule: who starts, and whom it leaves without a slot.

        Args:
            output: vLLM's ``SchedulerOutput``.
            now_s: monotonic clock, seconds.
        """
        for new in output.scheduled_new_reqs:
            if new.req_id in self._requests:
                self._start(new.req_id, now_s)
        if self._preempted:
            for request_id in self._preempted & output.num_scheduled_tokens.keys():
                self._start(request_id, now_s)
        if self._queued and len(self._running) >= self._slots:
            self._hold([a for a in self._queued if a not in self._running], now_s)

    def preempted(self, request: Any) -> None:
        """Take in a preemption: the request is queued again."""
        known = self._requests.get(request.request_id)
        if known is not None and known.running:
            self._stop(known)
            self._preempted.add(request.request_id)
            self._queued.setdefault(known.adapter, set()).add(request.request_id)

    def leaving(self, request: Any, now_s: float) -> None:
        """Take in a request that is about to be freed."""
        known = self._requests.pop(request.request_id, None)
        if known is None:
            return
        if known.running:
            self._stop(known)
        else:
            self._leave_queue(request.request_id, known.adapter, now_s)

    def _start(self, request_id: str, now_s: float) -> None:
        request = self._requests[request_id]
        if not request.running:
            self._leave_queue(request_id, request.adapter, now_s)
            request.running = True
            self._running[request.adapter] = self._running.get(request.adapter, 0) + 1

    def _stop(self, request: _Request) -> None:
        request.running = False
        self._running[request.adapter] -= 1
        if not self._running[request.adapter]:
            del self._running[request.adapter]

    def _hold(self, adapters: Iterable[int], now_s: float) -> None:
        for adapter in adapters:
            ids = self._queued.pop(adapter)
            self._held.setdefault(adapter, {}).update(dict.fromkeys(ids, now_s))
            for request_id in ids:
                request = self._requests[request_id]
                self.waits += not request.counted
                request.counted = True

    def _leave_queue(self, request_id: str, adapter: int, now_s: float) -> None:
        self._preempted.discard(request_id)
        held = self._held.get(adapter)
        if held is not None and request_id in held:
            self.wait_s += now_s - held.pop(request_id)
            if not held:
                del self._held[adapter]
            return
        queued = self._queued[adapter]
        queued.discard(request_id)
        if not queued:
            del self._queued[adapter]
