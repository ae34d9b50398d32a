"""What a source saw of an engine's adapters, as frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["AdapterSample", "LoraSample", "SlotWaitSample"]


@dataclass(frozen=True, slots=True)
class AdapterSample:
    """One adapter, since it has had counters of its own; or all that have none.

    Attributes:
        requests: by tier at first schedule.
        loads: into GPU memory, by the tier they came from.
        load_seconds: time they took on rank 0, by the same tier.
        evictions: by the tier it left to make room.
        bytes: of its weights in CPU memory; None when it is not in memory.
        rank: LoRA rank; None when it is not in memory.
    """

    requests: Mapping[str, int]
    loads: Mapping[str, int]
    load_seconds: Mapping[str, float]
    evictions: Mapping[str, int]
    bytes: int | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class SlotWaitSample:
    """Requests that waited because other adapters used all slots.

    Attributes:
        requests: how many, once each, since start.
        seconds: from when they were first held to when they were scheduled or left, since start.
        waiting: how many wait for that now.
    """

    requests: int
    seconds: float
    waiting: int


@dataclass(frozen=True, slots=True)
class LoraSample:
    """Adapters of one engine: counts of rank 0, times of the slowest rank.

    A load's duration is counted in the first of ``load_bounds_s`` that is not below it.

    Attributes:
        requests: requests with an adapter by tier at first schedule, since start.
        loads: loads into GPU memory by the tier they came from, since start.
        load_seconds: time they took, by the same tier.
        load_bounds_s: upper bounds of ``load_counts``; what took longer is in ``loads`` only.
        load_counts: loads by bound, by the same tier.
        resident: tier (``gpu``, ``cpu``) by adapter name, zombies left out.
        gpu_slots: adapters that fit into GPU memory (``max_loras``).
        cpu_slots: adapters that fit into CPU memory (``max_cpu_loras``).
        evictions: adapters that left a tier to make room, since start.
        slots_used: adapters in a tier now.
        zombies: of those, the ones whose name means another by now and that no request uses.
        slot_waits: None when the scheduler does not tell.
        adapters: by name, for those with the most traffic, and ``other``.
    """

    requests: Mapping[str, int]
    loads: Mapping[str, int]
    load_seconds: Mapping[str, float]
    load_bounds_s: tuple[float, ...]
    load_counts: Mapping[str, tuple[int, ...]]
    resident: Mapping[str, str]
    gpu_slots: int
    cpu_slots: int
    evictions: Mapping[str, int] = field(default_factory=dict)
    slots_used: Mapping[str, int] = field(default_factory=dict)
    zombies: Mapping[str, int] = field(default_factory=dict)
    slot_waits: SlotWaitSample | None = None
    adapters: Mapping[str, AdapterSample] = field(default_factory=dict)
