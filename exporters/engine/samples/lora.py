"""The sample of an engine's adapters."""

from collections.abc import Mapping
from typing import Any

from vramscope.exporters.signals.samples import LoraSample

__all__ = ["lora_sample"]

TIERS = ("gpu", "cpu", "disk")
LOAD_TIERS = ("cpu", "disk")
LOAD_BOUND = "load_cpu_le_"


def lora_sample(
    header: Mapping[str, Any], fields: Mapping[str, float], state: Mapping[str, Any]
) -> LoraSample:
    """Build the sample of an engine's adapters.

    Args:
        header: the engine record's header.
        fields: of the last step and scan of rank 0's worker.
        state: of the same worker.

    Raises:
        KeyError, TypeError, ValueError: the record lacks a field or has a wrong one.
    """
    bounds = tuple(
        float(name.removeprefix(LOAD_BOUND)) for name in fields if name.startswith(LOAD_BOUND)
    )
    return LoraSample(
        requests={tier: int(fields[f"requests_{tier}"]) for tier in TIERS},
        loads={tier: int(fields[f"loads_{tier}"]) for tier in LOAD_TIERS},
        load_seconds={tier: fields[f"load_s_{tier}"] for tier in LOAD_TIERS},
        load_bounds_s=bounds,
        load_counts={
            tier: tuple(int(fields[f"load_{tier}_le_{bound}"]) for bound in bounds)
            for tier in LOAD_TIERS
        },
        resident={str(name): str(tier) for name, tier in state.get("resident", {}).items()},
        gpu_slots=int(header["gpu_slots"]),
        cpu_slots=int(header["cpu_slots"]),
    )
