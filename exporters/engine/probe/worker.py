"""The probe of a worker: one rank of an engine, in a process of its own or in the EngineCore's."""

import logging
import os
import time
from collections.abc import Callable
from typing import Any

from vramscope.exporters.engine import rundir
from vramscope.exporters.engine.probe import adapters, identity
from vramscope.exporters.engine.probe.adapters import Adapters
from vramscope.exporters.engine.probe.budget import Budget
from vramscope.exporters.engine.probe.hooks import Guard, hook
from vramscope.exporters.engine.probe.part import Part
from vramscope.exporters.engine.writer import RecordWriter

__all__ = ["SCAN_FIELDS", "STEP_FIELDS", "WorkerProbe"]

log = logging.getLogger("vllm.vramscope")

SCAN_PERIOD_S = 0.15
REFRESH_PERIOD_S = 10.0
"""Between scans of a worker in which nothing that it counts has changed."""
ADAPTER_ROWS = 32

STEP_FIELDS = ("time_s",)
SCAN_FIELDS = ("scan_time_s",)


class WorkerProbe:
    """Attached to one worker whose model is loaded; every hook runs under ``guard``.

    Unlike an EngineCore's, its record is written when something has changed: a request has
    brought an adapter, one was loaded, memory was taken. Between steps nothing does.
    """

    def __init__(self, worker: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self.guard = Guard(self._switched_off)
        self._clock = clock
        self._scan_period_s = float(os.environ.get("VRAMSCOPE_SCAN_PERIOD_S", SCAN_PERIOD_S))
        self._changed = False
        self._scan_time_s = 0.0
        manager = getattr(worker.model_runner, "lora_manager", None)
        self._adapters: Adapters | None = None
        if manager is not None:
            rows = int(os.environ.get("VRAMSCOPE_LORA_ADAPTERS", ADAPTER_ROWS))
            self._adapters = Adapters(
                manager, self.guard, clock, self._tell, self._publish, max(0, rows)
            )
        self._budget = Budget(worker, self._publish, self._warn)
        lora = () if self._adapters is None else (self._adapters,)
        self._parts: tuple[Part, ...] = (*lora, self._budget)
        config, rank = worker.vllm_config, int(worker.rank)
        self._writer = RecordWriter(
            rundir.run_dir(),
            identity.record_name(config, "worker", rank),
            identity.worker_header(config, rank, int(worker.local_rank)),
            [*STEP_FIELDS, *(adapters.STEP_FIELDS if lora else ())],
            [*SCAN_FIELDS, *(name for part in self._parts for name in part.scan_fields)],
            group=os.environ.get("VRAMSCOPE_GROUP"),
        )
        hook(worker, "execute_model", self.guard, before=self._before_step)
        hook(worker, "shutdown", self.guard, before=self._before_shutdown)
        self._publish()

    @property
    def record(self) -> str:
        """Path of the record."""
        return str(self._writer.path)

    def _before_step(self, output: Any, *_: Any, **__: Any) -> None:
        now = self._clock()
        if (
            self._adapters is not None
            and (output.scheduled_new_reqs or output.finished_req_ids)
            and self._adapters.before_step(output)
        ):
            self._changed = True
            self._write_step(now)
        since_s = now - self._scan_time_s
        # vLLM tells workers who has finished by one more step, without tokens: then it is idle.
        due = since_s >= self._scan_period_s or not output.total_num_scheduled_tokens
        if (self._changed and due) or since_s >= REFRESH_PERIOD_S:
            if self._adapters is not None and self._adapters.review(now):
                self._write_state()
            self._write_scan(now)

    def _before_shutdown(self, *_: Any, **__: Any) -> None:
        # Here and not at exit only: vLLM often ends the process in the middle of it.
        self.guard.stop()
        self._writer.close()

    # What the record says.

    def _tell(self, *event: Any, **fields: Any) -> None:
        self._writer.add_event(*event, **fields)

    def _publish(self) -> None:
        """Write all of the record now."""
        now = self._clock()
        self._write_state()
        self._write_step(now)
        self._write_scan(now)

    def _write_step(self, now: float) -> None:
        lora = [] if self._adapters is None else self._adapters.step()
        self._writer.write_step([now, *lora])

    def _write_scan(self, now: float) -> None:
        # After the step: a reader that takes the scan first never sees it ahead of the totals.
        values = [now]
        for part in self._parts:
            values += part.scan(now)
        self._writer.write_scan(values)
        self._scan_time_s = now
        self._changed = False

    def _write_state(self) -> None:
        state = {} if self._adapters is None else self._adapters.state()
        self._writer.write_state({**self._said(on=True), "error": None, **state})

    def _said(self, *, on: bool) -> dict[str, dict[str, bool]]:
        can = {name: it and on for part in self._parts for name, it in part.capabilities().items()}
        return {"capabilities": can}

    def _switched_off(self, error: str) -> None:
        self._budget.guard.stop()
        try:
            self._writer.write_state({**self._said(on=False), "error": error})
        except OSError:
            # Not even that can be written: better no record than one that seems to live.
            self._writer.close()

    def _warn(self, why: str) -> None:
        log.warning("vramscope: %s", why)
