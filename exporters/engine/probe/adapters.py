"""A worker's part for LoRA: where each request's adapter was, and what moving it took.

All ranks of an engine apply the same adapters, so each record holds what its rank saw and
readers count by rank 0.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

from vramscope.exporters.engine.probe.adapter_table import (
    EVICTIONS,
    LOAD_S,
    LOADS,
    ROW_FIELDS,
    AdapterTable,
)
from vramscope.exporters.engine.probe.budget import storage_bytes
from vramscope.exporters.engine.probe.hooks import Guard, hook
from vramscope.exporters.engine.probe.requests import external_id, ids_are_randomized
from vramscope.exporters.engine.record import EventKind, Tier, request_hash

__all__ = ["LOAD_BOUNDS_S", "STEP_FIELDS", "Adapters", "lora_scan_fields"]

# The bounds of vramscope_lora_load_seconds. Here too, since the engine's process imports no
# catalog; readers take them from the record, and a test holds the two together.
LOAD_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
STEP_FIELDS = (
    *(f"lora_requests_{tier}" for tier in ("gpu", "cpu", "disk")),
    *(f"lora_loads_{tier}" for tier in ("cpu", "disk")),
    *(f"lora_load_s_{tier}" for tier in ("cpu", "disk")),
)
COUNTS = (
    *(f"lora_load_cpu_le_{bound}" for bound in LOAD_BOUNDS_S),
    *(f"lora_load_disk_le_{bound}" for bound in LOAD_BOUNDS_S),
    *(f"lora_evictions_{tier}" for tier in ("gpu", "cpu")),
    *(f"lora_resident_{tier}" for tier in ("gpu", "cpu")),
    *(f"lora_zombies_{tier}" for tier in ("gpu", "cpu")),
)


def lora_scan_fields(rows: int) -> tuple[str, ...]:
    """Return the names of a scan with so many adapters of their own, the others last."""
    names = [*map(str, range(rows)), "other"]
    return (*COUNTS, *(f"lora_adapter{name}_{field}" for name in names for field in ROW_FIELDS))


class Adapters:
    """Follows one worker's LoRA manager. Counters since start.

    Args:
        manager: vLLM's ``LRUCacheWorkerLoRAManager``.
        guard: runs the hooks.
        clock: the host's monotonic clock, seconds.
        tell: takes each event, as ``RecordWriter.add_event`` does.
        publish: called when adapters have moved.
        rows: adapters with counters of their own, at most.
    """

    def __init__(
        self,
        manager: Any,
        guard: Guard,
        clock: Callable[[], float],
        tell: Callable[..., None],
        publish: Callable[[], None],
        rows: int,
    ) -> None:
        self._manager = manager
        self._clock = clock
        self._tell = tell
        self._publish = publish
        self._randomized_ids = ids_are_randomized()
        self._using: dict[str, int] = {}  # adapter by request that has been scheduled
        self._names: dict[int, str] = {}  # of resident adapters
        self._sizes: dict[int, tuple[int, int]] = {}  # bytes and rank of the same
        self._newest: dict[str, int] = {}  # number under which a name was last loaded or asked for
        self._requests = {Tier.GPU: 0, Tier.CPU: 0, Tier.DISK: 0}
        self._loads = {Tier.CPU: 0, Tier.DISK: 0}
        self._load_s = {Tier.CPU: 0.0, Tier.DISK: 0.0}
        self._load_counts = {tier: [0] * (len(LOAD_BOUNDS_S) + 1) for tier in self._loads}
        self._evictions = {Tier.GPU: 0, Tier.CPU: 0}
        self._table = AdapterTable(rows, clock())
        self._loading: tuple[Tier, float, set[int], set[int]] | None = None
        self.scan_fields = lora_scan_fields(rows)
        self._attached = hook(
            manager, "add_adapter", guard, before=self._before_add, after=self._after_add
        )
        hook(manager, "remove_adapter", guard, after=self._after_remove)
        hook(manager, "remove_all_adapters", guard, after=self._after_remove)

    def capabilities(self) -> dict[str, bool]:
        """Return whether adapters are followed."""
        return {"lora": self._attached}

    def step(self) -> list[float]:
        """Return the values of ``STEP_FIELDS``."""
        return [*self._requests.values(), *self._loads.values(), *self._load_s.values()]

    def scan(self, now_s: float) -> Sequence[float]:
        """Return the values of ``scan_fields``."""
        del now_s
        models = self._models()
        zombies = self._zombies()
        return [
            *(n for counts in self._load_counts.values() for n in counts[:-1]),
            *self._evictions.values(),
            len(models._active_adapters),  # noqa: SLF001
            len(models._registered_adapters),  # noqa: SLF001
            zombies.count(Tier.GPU),
            zombies.count(Tier.CPU),
            *self._table.values(),
        ]

    def review(self, now_s: float) -> bool:
        """Return whether other adapters have counters of their own now."""
        return self._table.review(now_s)

    def state(self) -> dict[str, Any]:
        """Return what the record's state says of adapters, those in memory by name."""
        named = {name: n for name, n in self._newest.items() if n in self._names}
        return {
            "adapters": self._table.state(),
            "resident": {name: self._tier(n).name.lower() for name, n in named.items()},
            "numbers": self._names,
            "bytes": {name: self._sizes[n][0] for name, n in named.items()},
            "ranks": {name: self._sizes[n][1] for name, n in named.items()},
        }

    def before_step(self, output: Any) -> bool:
        """Count requests scheduled for the first time, by their adapter's tier at this moment.

        Called before the worker applies the step's adapters, so requests that share a load
        all get the tier their adapter came from.

        Args:
            output: vLLM's ``SchedulerOutput``.

        Returns:
            whether there were any.
        """
        using = self._using
        counted = False
        for new in output.scheduled_new_reqs:
            lora = new.lora_request
            if lora is None or new.req_id in using:
                continue
            number, adapter = lora.lora_int_id, str(lora.lora_name)
            using[new.req_id] = number
            self._newest[adapter] = number
            tier = self._tier(number)
            self._requests[tier] += 1
            self._table.count_request(adapter, tier)
            name = external_id(new.req_id, self._randomized_ids)
            self._tell(
                request_hash(name),
                self._clock(),
                EventKind.ADAPTER_APPLIED,
                tier=tier,
                adapter=number,
            )
            counted = True
        if using:
            for request_id in output.finished_req_ids:
                using.pop(request_id, None)
        return counted

    def _models(self) -> Any:
        return self._manager._adapter_manager  # noqa: SLF001  # vLLM offers no other way

    def _tier(self, number: int) -> Tier:
        models = self._models()
        if number in models._active_adapters:  # noqa: SLF001
            return Tier.GPU
        if number in models._registered_adapters:  # noqa: SLF001
            return Tier.CPU
        return Tier.DISK

    def _zombies(self) -> list[Tier]:
        """Return the tiers of adapters whose name means another one by now and that none uses."""
        old = [number for number, name in self._names.items() if self._newest[name] != number]
        if not old:
            return []
        used = set(self._using.values())
        return [self._tier(number) for number in old if number not in used]

    def _before_add(self, request: Any) -> None:
        in_place = getattr(request, "load_inplace", False)  # reads the disk whatever is resident
        tier = Tier.DISK if in_place else self._tier(request.lora_int_id)
        if tier is Tier.GPU:
            self._loading = None
            return
        models = self._models()
        active, registered = models._active_adapters, models._registered_adapters  # noqa: SLF001
        self._loading = (tier, self._clock(), set(active), set(registered))

    def _after_add(self, _: Any, request: Any) -> None:
        if self._loading is None:
            return
        tier, started_s, active, registered = self._loading
        self._loading = None
        now = self._clock()
        took_s = now - started_s
        name, number = str(request.lora_name), int(request.lora_int_id)
        self._names[number] = name
        self._newest[name] = number
        self._loads[tier] += 1
        self._load_s[tier] += took_s
        self._load_counts[tier][bisect_left(LOAD_BOUNDS_S, took_s)] += 1
        row = self._table.row(name)
        row[LOADS + tier] += 1
        row[LOAD_S + tier] += took_s
        models = self._models()
        lora = models._registered_adapters.cache[number]  # noqa: SLF001
        self._sizes[number] = (adapter_bytes(lora), int(lora.rank))
        self._evict(Tier.GPU, active - set(models._active_adapters))  # noqa: SLF001
        self._evict(Tier.CPU, registered - set(models._registered_adapters))  # noqa: SLF001
        self._tell(
            0, now, EventKind.ADAPTER_LOADED, tier=tier, adapter=number, tokens=int(took_s * 1e6)
        )
        self._forget()
        self._publish()

    def _evict(self, tier: Tier, numbers: set[int]) -> None:
        for number in numbers:
            self._evictions[tier] += 1
            self._table.row(self._names.get(number, ""))[EVICTIONS + tier] += 1

    def _after_remove(self, *_: Any, **__: Any) -> None:
        self._forget()
        self._publish()

    def _forget(self) -> None:
        """Drop the names of adapters that are not in memory any more."""
        resident = self._models()._registered_adapters  # noqa: SLF001
        self._names = {n: name for n, name in self._names.items() if n in resident}
        self._sizes = {n: size for n, size in self._sizes.items() if n in resident}
        names = set(self._names.values())
        self._newest = {name: n for name, n in self._newest.items() if name in names}


def adapter_bytes(lora: Any) -> int:
    """Return the bytes of an adapter's weights as the worker keeps them in CPU memory."""
    parts = [part for layer in lora.loras.values() for part in (layer.lora_a, layer.lora_b)]
    tensors = [one for part in parts for one in (part if isinstance(part, list) else [part])]
    return storage_bytes((tensor for tensor in tensors if tensor is not None), "cpu")
