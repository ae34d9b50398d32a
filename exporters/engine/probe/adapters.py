"""The probe of a worker: where each request's adapter was, and what loading it took.

The record of a worker holds what its rank saw; readers count requests from rank 0 only, since
all ranks of an engine apply the same adapters.
"""

import os
import time
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from vramscope.exporters.engine import rundir
from vramscope.exporters.engine.probe import identity
from vramscope.exporters.engine.probe.hooks import Guard, hook
from vramscope.exporters.engine.probe.requests import external_id, ids_are_randomized
from vramscope.exporters.engine.record import EventKind, Tier, request_hash
from vramscope.exporters.engine.writer import RecordWriter

__all__ = ["WorkerProbe"]

# The bounds of vramscope_lora_load_seconds. Here too, since the engine's process imports no
# catalog; readers take them from the record, and a test holds the two together.
LOAD_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
FIELDS = (
    "time_s",
    "events",
    "requests_gpu",
    "requests_cpu",
    "requests_disk",
    "loads_cpu",
    "loads_disk",
    "load_s_cpu",
    "load_s_disk",
    *(f"load_cpu_le_{bound}" for bound in LOAD_BOUNDS_S),
    *(f"load_disk_le_{bound}" for bound in LOAD_BOUNDS_S),
)


class WorkerProbe:
    """Attached to one worker's LoRA manager; every hook runs under ``guard``."""

    def __init__(
        self, manager: Any, config: Any, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.guard = Guard(self._switched_off)
        self._manager = manager
        self._clock = clock
        self._randomized_ids = ids_are_randomized()
        self._seen: set[str] = set()
        self._names: dict[int, str] = {}
        self._requests = {Tier.GPU: 0, Tier.CPU: 0, Tier.DISK: 0}
        self._loads = {Tier.CPU: 0, Tier.DISK: 0}
        self._load_s = {Tier.CPU: 0.0, Tier.DISK: 0.0}
        self._load_counts = {tier: [0] * (len(LOAD_BOUNDS_S) + 1) for tier in self._loads}
        self._loading: tuple[Tier, float] | None = None
        rank = int(config.parallel_config.rank)
        self._writer = RecordWriter(
            rundir.run_dir(),
            identity.record_name(config, "worker", rank),
            identity.worker_header(config, rank),
            FIELDS,
            group=os.environ.get("VRAMSCOPE_GROUP"),
        )
        self._attached = hook(
            manager,
            "add_adapter",
            self.guard,
            before=self._before_add,
            after=self._after_add,
        )
        hook(manager, "remove_adapter", self.guard, after=self._after_remove)
        self._write_state(None)
        self._write()

    def before_step(self, output: Any) -> None:
        """Count requests scheduled for the first time, by their adapter's tier at this moment.

        Called before the worker applies the step's adapters, so requests that share a load
        all get the tier their adapter came from.
        """
        seen = self._seen
        counted = False
        for new in output.scheduled_new_reqs:
            lora = new.lora_request
            if lora is None or new.req_id in seen:
                continue
            seen.add(new.req_id)
            tier = self._tier(lora.lora_int_id)
            self._requests[tier] += 1
            name = external_id(new.req_id, self._randomized_ids)
            self._writer.add_event(
                request_hash(name),
                self._clock(),
                EventKind.ADAPTER_APPLIED,
                tier=tier,
                adapter=lora.lora_int_id,
            )
            counted = True
        if seen and output.finished_req_ids:
            seen.difference_update(output.finished_req_ids)
        if counted:
            self._write()

    def before_shutdown(self) -> None:
        """Remove the record: the worker is ending."""
        self.guard.stop()
        self._writer.close()

    def _tier(self, adapter: int) -> Tier:
        models = self._manager._adapter_manager  # noqa: SLF001  # vLLM offers no other way
        if adapter in models._active_adapters:  # noqa: SLF001
            return Tier.GPU
        if adapter in models._registered_adapters:  # noqa: SLF001
            return Tier.CPU
        return Tier.DISK

    def _before_add(self, request: Any) -> None:
        in_place = getattr(request, "load_inplace", False)  # reads the disk whatever is resident
        tier = Tier.DISK if in_place else self._tier(_number(request))
        self._loading = (tier, self._clock())

    def _after_add(self, _: Any, request: Any) -> None:
        if self._loading is None or self._loading[0] is Tier.GPU:
            return
        tier, started_s = self._loading
        self._loading = None
        adapter = _number(request)
        now = self._clock()
        self._names[adapter] = str(request.lora_name)
        self._loads[tier] += 1
        self._load_s[tier] += now - started_s
        self._load_counts[tier][bisect_left(LOAD_BOUNDS_S, now - started_s)] += 1
        self._writer.add_event(
            0,
            now,
            EventKind.ADAPTER_LOADED,
            tier=tier,
            adapter=adapter,
            tokens=int((now - started_s) * 1e6),
        )
        self._write_state(None)
        self._write()

    def _after_remove(self, *_: Any, **__: Any) -> None:
        self._write_state(None)
        self._write()

    def _write(self) -> None:
        self._writer.write_step(
            [
                self._clock(),
                self._writer.events,
                *self._requests.values(),
                *self._loads.values(),
                *self._load_s.values(),
                *(n for counts in self._load_counts.values() for n in counts[:-1]),
            ]
        )

    def _write_state(self, error: str | None) -> None:
        models = self._manager._adapter_manager  # noqa: SLF001
        ids = list(models._registered_adapters.cache)  # noqa: SLF001
        self._names = {number: name for number, name in self._names.items() if number in ids}
        resident = {name: self._tier(number).name.lower() for number, name in self._names.items()}
        self._writer.write_state(
            {
                "capabilities": {"lora": self._attached and error is None},
                "error": error,
                "resident": resident,
                "numbers": self._names,
            }
        )

    def _switched_off(self, error: str) -> None:
        self._writer.write_state({"capabilities": {"lora": False}, "error": error})


def _number(request: Any) -> int:
    return int(request.lora_int_id)
