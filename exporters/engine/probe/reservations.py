"""Which free blocks a new request may not take, and who was refused for want of blocks."""

from collections.abc import Sequence
from typing import Any

from vramscope.exporters.engine.probe.blocks import PoolTracker
from vramscope.exporters.engine.probe.hooks import Guard, hook

__all__ = ["Reservations"]

UNKNOWN = float("nan")


class Reservations:
    """The scheduler's ways of saying no: watermark, reservations, refusals.

    ``allocate_slots`` is called for each request at each step, so it is not hooked: only the call
    that follows the look into the prefix cache, which vLLM takes for requests about to be
    admitted. A running request that gets no block preempts another, which its own hook tells.
    """

    scan_fields = (
        "reservation_watermark",
        "reservation_prefill",
        "reservation_refused_waiting",
        "reservation_refused_running",
        "reservation_refused_wants",
    )

    def __init__(self, scheduler: Any, guard: Guard) -> None:
        self._scheduler = scheduler
        self._manager = scheduler.kv_cache_manager
        self._guard = guard
        self._refused_waiting = self._refused_running = 0
        self._refused: Any = None
        self._watermark = self._prefill = 0
        self._next = self._allocate_next  # one object, to be known by
        self._set_before: Any = None
        self._allocate: Any = None
        self._attached = hasattr(self._manager, "allocate_slots") and hook(
            self._manager, "get_computed_blocks", guard, after=self._watch_next
        )
        hook(self._manager, "get_computed_blocks_for_connector", guard, after=self._watch_next)

    def capabilities(self) -> dict[str, bool]:
        """Return whether refusals of waiting requests are seen."""
        return {"refusals": self._attached}

    @property
    def refusals(self) -> int:
        """Requests refused for want of blocks since start, waiting and running ones."""
        return self._refused_waiting + self._refused_running

    def reserved(self, tracker: PoolTracker) -> int:
        """Return R at the last scan, free blocks that a new request may not take.

        vLLM keeps them of its main pool only.
        """
        if tracker.pool is not self._manager.block_pool:
            return 0
        return int(min(self._watermark + self._prefill, tracker.free))

    def refused_running(self) -> None:
        """Count a running request that got no block: vLLM preempts for it now."""
        self._refused_running += 1

    def scan(self, now_s: float) -> Sequence[float]:
        """Return the values of ``scan_fields``; what was wanted, of the last refused since then."""
        del now_s
        scheduler = self._scheduler
        self._watermark = getattr(self._manager, "watermark_blocks", 0) if scheduler.running else 0
        in_flight = getattr(scheduler, "_inflight_prefill_reserved_blocks", None)
        self._prefill = in_flight() if in_flight is not None else 0
        wants, self._refused = self._wants(self._refused), None
        return (
            self._watermark,
            self._prefill,
            self._refused_waiting,
            self._refused_running,
            wants,
        )

    def _wants(self, request: Any) -> float:
        """Return the blocks a refused request would take, were nothing of it cached."""
        remaining = getattr(self._scheduler, "_request_remaining_blocks", None)
        if request is None or remaining is None:
            return UNKNOWN
        if request.status.name not in ("WAITING", "PREEMPTED"):
            return UNKNOWN  # admitted meanwhile, or gone
        return float(remaining(request))

    def _watch_next(self, *_: Any, **__: Any) -> None:
        manager = self._manager
        set_on_it = vars(manager).get("allocate_slots")
        if set_on_it is not self._next:
            self._set_before, self._allocate = set_on_it, manager.allocate_slots
            manager.allocate_slots = self._next

    def _allocate_next(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        manager = self._manager
        if vars(manager).get("allocate_slots") is self._next:
            if self._set_before is None:
                del manager.allocate_slots
            else:
                manager.allocate_slots = self._set_before
        blocks = self._allocate(request, *args, **kwargs)
        if blocks is None and self._guard.enabled:
            try:
                if request.status.name != "RUNNING":  # which preempts, and is counted there
                    self._refused_waiting += 1
                    self._refused = request
            except Exception as error:  # noqa: BLE001  # the engine never dies of its telemetry
                self._guard.disable("allocate_slots", error)
        return blocks
