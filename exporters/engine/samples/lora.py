"""The sample of an engine's adapters, from its scheduler's record and its workers'."""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

from vramscope.exporters.signals.lora_samples import AdapterSample, LoraSample, SlotWaitSample

__all__ = ["lora_sample"]

TIERS = ("gpu", "cpu", "disk")
LOAD_TIERS = ("cpu", "disk")
MEMORY_TIERS = ("gpu", "cpu")
BOUND = "lora_load_cpu_le_"
OTHER = "other"

Fields = Mapping[str, float]


def lora_sample(
    header: Mapping[str, Any], engine: Fields, workers: Sequence[Fields], state: Mapping[str, Any]
) -> LoraSample:
    """Build the sample of an engine's adapters.

    All ranks apply the same adapters, so counts are rank 0's. A step waits for the slowest rank,
    so times are: of each bound the fewest loads of any rank that were within it, and the most
    time. Both only go up, as each rank's do.

    Args:
        header: the engine record's header.
        engine: the fields of its last step and scan.
        workers: of the last step and scan of each worker, rank 0's first.
        state: of rank 0's worker.

    Raises:
        KeyError, TypeError, ValueError: a record lacks a field or has a wrong one.
    """
    first = workers[0]
    bounds = tuple(float(name.removeprefix(BOUND)) for name in first if name.startswith(BOUND))
    return LoraSample(
        requests=_counts(first, "lora_requests_", TIERS),
        loads=_counts(first, "lora_loads_", LOAD_TIERS),
        load_seconds={
            tier: max(fields[f"lora_load_s_{tier}"] for fields in workers) for tier in LOAD_TIERS
        },
        load_bounds_s=bounds,
        load_counts={tier: _slowest(workers, tier, bounds) for tier in LOAD_TIERS},
        resident={str(name): str(tier) for name, tier in state.get("resident", {}).items()},
        gpu_slots=int(header["gpu_slots"]),
        cpu_slots=int(header["cpu_slots"]),
        evictions=_counts(first, "lora_evictions_", MEMORY_TIERS),
        slots_used=_counts(first, "lora_resident_", MEMORY_TIERS),
        zombies=_counts(first, "lora_zombies_", MEMORY_TIERS),
        slot_waits=_slot_waits(engine),
        adapters=_adapters(first, state),
    )


def _counts(fields: Fields, prefix: str, tiers: Sequence[str]) -> dict[str, int]:
    return {tier: int(fields[prefix + tier]) for tier in tiers}


def _slowest(workers: Sequence[Fields], tier: str, bounds: Sequence[float]) -> tuple[int, ...]:
    """Return loads by bound: in each, those that all ranks had done within it and no less."""
    by_rank = [
        accumulate(int(fields[f"lora_load_{tier}_le_{bound}"]) for bound in bounds)
        for fields in workers
    ]
    upto = [min(counts) for counts in zip(*by_rank, strict=True)]
    return tuple(after - before for before, after in pairwise([0, *upto]))


def _slot_waits(engine: Fields) -> SlotWaitSample | None:
    if "lora_slot_waits" not in engine:
        return None
    return SlotWaitSample(
        requests=int(engine["lora_slot_waits"]),
        seconds=engine["lora_slot_wait_s"],
        waiting=int(engine["lora_slot_waiting"]),
    )


def _adapters(fields: Fields, state: Mapping[str, Any]) -> dict[str, AdapterSample]:
    """Return counts by adapter, those of all others under ``other``."""
    sizes, ranks = state.get("bytes", {}), state.get("ranks", {})
    adapters = {}
    for place, owner in enumerate(state.get("adapters", ())):
        # Another turn: the row has just got a new owner, and state or scan is not written yet.
        if owner is not None and fields[f"lora_adapter{place}_turn"] == owner[1]:
            name = str(owner[0])
            adapters[name] = _adapter(
                fields, f"lora_adapter{place}_", sizes.get(name), ranks.get(name)
            )
    adapters[OTHER] = _adapter(fields, f"lora_adapter{OTHER}_", None, None)
    return adapters


def _adapter(fields: Fields, row: str, size: int | None, rank: int | None) -> AdapterSample:
    return AdapterSample(
        requests=_counts(fields, f"{row}requests_", TIERS),
        loads=_counts(fields, f"{row}loads_", LOAD_TIERS),
        load_seconds={tier: fields[f"{row}load_s_{tier}"] for tier in LOAD_TIERS},
        evictions=_counts(fields, f"{row}evictions_", MEMORY_TIERS),
        bytes=None if size is None else int(size),
        rank=None if rank is None else int(rank),
    )
