"""Counts adapters from vLLM's own objects, for ``exact.py``. Shares no code with the probe."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from exact_requests import queued


class AdaptersCheck:
    """Counts loads, evictions and waits for a slot independently."""

    def __init__(self, scheduler: Any, manager: Any) -> None:
        self.scheduler = scheduler
        self.seen: Counter[str] = Counter()
        self.models = manager._adapter_manager
        self.slots = self.models.lora_slots
        self.waited: set[str] = set()
        self.held: set[str] = set()
        self._watch_loads(manager)
        self._watch_schedule(scheduler)

    def _watch_loads(self, manager: Any) -> None:
        load, activate = manager._load_adapter, self.models.activate_adapter

        def watched_load(request: Any) -> Any:
            self.seen["disk_loads"] += 1
            return load(request)

        def watched_activate(adapter: int) -> Any:
            moved = activate(adapter)
            self.seen["activations"] += bool(moved)
            return moved

        manager._load_adapter, self.models.activate_adapter = watched_load, watched_activate
        # What each of vLLM's caches calls for what it drops.
        self._watch_drops(self.models._active_adapters, "gpu_evictions")
        self._watch_drops(self.models._registered_adapters, "cpu_evictions")

    def _watch_drops(self, cache: Any, name: str) -> None:
        drop = cache.deactivate_fn

        def watched_drop(adapter: int) -> Any:
            self.seen[name] += 1
            return drop(adapter)

        cache.deactivate_fn = watched_drop

    def _watch_schedule(self, scheduler: Any) -> None:
        schedule = scheduler.schedule

        def watched_schedule(*args: Any, **kwargs: Any) -> Any:
            output = schedule(*args, **kwargs)
            running = self._running()
            waiting = [r for r in queued(scheduler) if r.lora_request is not None]
            here = {r.request_id for r in waiting}
            self.held &= here
            if len(running) >= self.slots:
                self.held |= {
                    r.request_id for r in waiting if r.lora_request.lora_int_id not in running
                }
            self.waited |= self.held
            return output

        scheduler.schedule = watched_schedule

    def _running(self) -> set[int]:
        running = self.scheduler.running
        return {r.lora_request.lora_int_id for r in running if r.lora_request is not None}

    def truth_of_scheduler(self) -> dict[str, float]:
        """Return what the EngineCore's record must say now."""
        running = self._running()
        blocked = [
            request
            for request in queued(self.scheduler)
            if request.request_id in self.held and request.lora_request.lora_int_id not in running
        ]
        self.seen["slot_waits"] = len(self.waited)
        return {
            "lora_slot_waits": len(self.waited),
            "lora_slot_waiting": len(blocked) if len(running) >= self.slots else 0,
        }

    def ends(self, worker: dict[str, float]) -> Iterator[tuple[str, float, float]]:
        """Yield (what, found, wanted) of the worker's record when all is done."""
        for tier in ("gpu", "cpu"):
            evictions = worker[f"lora_evictions_{tier}"]
            yield f"{tier} evictions", evictions, self.seen[f"{tier}_evictions"]
        yield "in slots", worker["lora_resident_gpu"], len(self.models._active_adapters)
        yield "in memory", worker["lora_resident_cpu"], len(self.models._registered_adapters)
        for count in (
            *(f"requests_{tier}" for tier in ("gpu", "cpu", "disk")),
            *(f"loads_{tier}" for tier in ("cpu", "disk")),
            *(f"evictions_{tier}" for tier in ("gpu", "cpu")),
        ):
            rows = [
                value
                for name, value in worker.items()
                if name.startswith("lora_adapter") and name.endswith(f"_{count}")
            ]
            yield f"{count} of all rows", sum(rows), worker[f"lora_{count}"]
