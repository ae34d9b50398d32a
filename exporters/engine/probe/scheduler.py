"""The probe of an EngineCore: hooks its scheduler, has the parts count, writes the record."""

import os
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from vramscope.exporters.engine import rundir
from vramscope.exporters.engine.probe import identity
from vramscope.exporters.engine.probe.dump import PageTableDump
from vramscope.exporters.engine.probe.growth import Growth
from vramscope.exporters.engine.probe.hooks import Guard, hook
from vramscope.exporters.engine.probe.lifecycle import InFlight, Lifecycle
from vramscope.exporters.engine.probe.offload import Offload
from vramscope.exporters.engine.probe.part import Part
from vramscope.exporters.engine.probe.pools import Pools
from vramscope.exporters.engine.probe.preemption import PREEMPTION_REASONS
from vramscope.exporters.engine.probe.requests import ids_are_randomized
from vramscope.exporters.engine.probe.reservations import Reservations
from vramscope.exporters.engine.probe.slot_waits import SlotWaits
from vramscope.exporters.engine.probe.static_waste import StaticWaste
from vramscope.exporters.engine.writer import RecordWriter

__all__ = ["REQUEST_FIELDS", "SCAN_FIELDS", "STEP_FIELDS", "SchedulerProbe"]

SCAN_PERIOD_S = 0.15

# Of each step. What hangs on the load's requests comes last: most steps change nothing of it.
STEP_FIELDS = ("time_s", "busy", "steps", "running", "waiting", "batch_requests", "batch_tokens")
REQUEST_FIELDS = (
    "first_schedules",
    "finished",
    "aborted",
    "cached_tokens",
    "prefill_tokens",
    "recomputed_tokens",
    "preempted_tokens",
    *(f"preemptions_{reason}" for reason in PREEMPTION_REASONS),
)
SCAN_FIELDS = ("scan_time_s",)


class SchedulerProbe:
    """Attached to one ``Scheduler``; every hook runs under ``guard``.

    The parts know their subjects; here is when they are told, and what they say together.
    """

    def __init__(self, scheduler: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self.guard = Guard(self._switched_off)
        self._scheduler = scheduler
        self._clock = clock
        self._scan_period_s = float(os.environ.get("VRAMSCOPE_SCAN_PERIOD_S", SCAN_PERIOD_S))
        self._reservations = Reservations(scheduler, self.guard)
        self._pools = Pools(scheduler, self._reservations, self.guard, clock)
        self._static_waste = StaticWaste(scheduler, self._pools)
        self._growth = Growth(scheduler, self._pools)
        self._requests = Lifecycle(scheduler, clock, self._growth)
        self._load = self._requests.load
        lora = getattr(scheduler, "lora_config", None)
        self._slots = SlotWaits(int(lora.max_loras)) if lora else None
        slots = () if self._slots is None else (self._slots,)
        # In this order: the pools take R from the reservations, growth U and static waste the
        # computed tokens from the pools, all of the same scan.
        self._parts: tuple[Part, ...] = (
            self._reservations,
            self._pools,
            self._static_waste,
            self._growth,
            self._requests,
            self._requests.preemption,
            self._load,
            self._requests.waiting,
            *slots,
        )
        connector = getattr(scheduler, "connector", None)
        self._offload = None if connector is None else Offload(connector, self.guard)
        if self._offload is not None:
            self._parts += (self._offload,)
        self._in_flight: deque[InFlight] = deque(maxlen=64)
        self._schedules = self._step_number = 0
        self._schedule_began_s = self._step_began_s = 0.0
        self._refusals_before = 0
        self._scheduling = self._resetting = False
        self._busy = self._paused = False
        self._running = self._waiting = 0
        self._scan_time_s = 0.0
        config = scheduler.vllm_config
        header = identity.engine_header(
            config, scheduler.kv_cache_config, self._pools.pools, self._pools.managers
        )
        try:
            self._writer = RecordWriter(
                rundir.run_dir(),
                identity.record_name(config, "engine"),
                header,
                [*STEP_FIELDS, *self._pools.step_fields, *REQUEST_FIELDS],
                [*SCAN_FIELDS, *(name for part in self._parts for name in part.scan_fields)],
                group=os.environ.get("VRAMSCOPE_GROUP"),
            )
        except BaseException:
            self.guard.stop()  # some parts have hooked already
            raise
        self._requests.tell = self._writer.add_event
        self._row = self._writer.row
        self._page_table = PageTableDump(
            scheduler,
            self._pools.pools,
            self._pools.managers,
            ids_are_randomized(),
            self._writer,
            self._no_page_table,
            clock,
        )
        self._capabilities = self._attach() | {"page_table": True}
        for part in self._parts:
            self._capabilities |= part.capabilities()
        self._writer.write_state({"capabilities": self._capabilities, "error": None})
        now = self._clock()
        self._scan(now)
        self._write(now, 0)

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
        # Of later releases: absent means it can't be paused.
        hook(scheduler, "set_pause_state", guard, after=self._after_pause)
        hook(scheduler, "shutdown", guard, before=self._before_shutdown)
        preemption = hook(scheduler, "_preempt_request", guard, before=self._before_preempt)
        return {
            "steps": steps,
            "requests": requests,
            "preemption": preemption,
            "prefill": steps and requests and preemption,
        }

    # Hooks, in the order of a request's life.

    def _after_add(self, _: Any, request: Any) -> None:
        self._requests.queued(request, self._schedules)
        if self._slots is not None:
            self._slots.queued(request)
        if not self._busy:
            self._busy = True
            self._write(self._clock(), len(self._scheduler.running))

    def _before_schedule(self, *_: Any, **__: Any) -> None:
        self._scheduling = True
        self._refusals_before = self._reservations.refusals
        self._schedule_began_s = self._clock()

    def _after_schedule(self, output: Any, *_: Any, **__: Any) -> None:
        self._scheduling = False
        self._schedules = number = self._schedules + 1
        short = self._reservations.refusals > self._refusals_before
        self._in_flight.append((output, number, self._schedule_began_s))
        self._requests.waiting.schedule = number, output.total_num_scheduled_tokens, short
        if output.scheduled_new_reqs or self._requests.preemption.waiting:
            self._requests.scheduled(output, number)
        if self._slots is not None:
            self._slots.scheduled(output, self._clock())

    def _before_preempt(self, request: Any, *_: Any, **__: Any) -> None:
        reason = "other"
        if self._scheduling:
            reason = "kv_exhausted"
            self._reservations.refused_running()
        elif self._resetting:
            reason = "cache_reset"
        self._requests.preempted(request, reason)
        if self._slots is not None:
            self._slots.preempted(request)

    def _before_reset(self, *_: Any, **__: Any) -> None:
        self._resetting = True

    def _after_reset(self, *_: Any, **__: Any) -> None:
        self._resetting = False

    def _before_free(self, request: Any, *_: Any, **__: Any) -> None:
        self._static_waste.leaving(request)
        self._requests.leaving(request, self._in_flight)
        if self._slots is not None:
            self._slots.leaving(request, self._clock())
        if self._offload is not None:
            self._offload.leaving(request.request_id)

    def _before_update(self, output: Any, computed: Any = None, *_: Any, **__: Any) -> None:
        # Before vLLM does: a request that this step finishes is gone after.
        number = self._schedules
        while self._in_flight:
            scheduled, number, self._step_began_s = self._in_flight.popleft()
            if scheduled is output:
                break
        self._step_number = number
        if self._requests.prefill.in_prefill:
            self._requests.computed(output, number)
        if self._offload is not None:
            self._offload.computed(computed)

    def _after_update(self, _: Any, output: Any, *__: Any, **___: Any) -> None:
        now = self._clock()
        self._load.computed(output, self._step_number, self._step_began_s, now)
        running = len(self._scheduler.running)
        # vLLM's own answer takes a microsecond and differs for a paused or empty engine only.
        self._busy = (running > 0 and not self._paused) or self._has_work()
        scanned = None
        if now - self._scan_time_s >= self._scan_period_s or not self._busy:
            scanned = self._scan(now)
        self._write(now, running)
        if scanned is not None:
            self._page_table.after_scan(now, self._busy, scanned)

    def _after_pause(self, *_: Any, **__: Any) -> None:
        # A paused engine isn't hung, whatever it holds.
        self._paused = bool(self._scheduler.pause_state)
        self._busy = self._has_work()
        self._write(self._clock(), len(self._scheduler.running))

    def _has_work(self) -> bool:
        return bool(self._scheduler.get_num_unfinished_requests() > 0)

    def _before_shutdown(self, *_: Any, **__: Any) -> None:
        # Here and not at exit only: vLLM's API server often ends the process in the middle of it.
        self.guard.stop()
        self._writer.close()

    # What the record says.

    def _scan(self, now: float) -> list[float]:
        """Write the slow numbers, all of one moment, and return them."""
        values = [now]
        for part in self._parts:
            values += part.scan(now)
        self._writer.write_scan(values)
        self._scan_time_s = now
        return values

    def _write(self, now: float, running: int) -> None:
        requests, load, row = self._requests, self._load, self._row
        changed = requests.changed
        if changed or running != self._running:
            self._running, self._waiting = self._scheduler.get_request_counts()
            row[3], row[4] = self._running, self._waiting
        # By STEP_FIELDS.
        row[0] = now
        row[1] = self._busy
        row[2] = load.steps
        row[5] = load.batch_requests
        row[6] = load.batch_tokens
        at = len(STEP_FIELDS)
        for tracker in self._pools.trackers:
            row[at], row[at + 1] = tracker.now()
            at += 2
        if changed:
            requests.changed = False
            for index, value in enumerate(requests.step(), at):
                row[index] = value
        self._writer.write_step()

    def _no_page_table(self, error: str) -> None:
        self._capabilities["page_table"] = False
        self._writer.write_state(
            {"capabilities": self._capabilities, "error": None, "page_table_error": error}
        )

    def _switched_off(self, error: str) -> None:
        off = dict.fromkeys(self._capabilities, False)
        try:
            self._writer.write_state({"capabilities": off, "error": error})
        except OSError:
            self._writer.close()  # no record is better than one that seems to be of a hung engine
