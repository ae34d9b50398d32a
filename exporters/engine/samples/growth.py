"""The sample of each block pool's growth."""

from collections.abc import Mapping

from vramscope.exporters.signals.kv_samples import GrowthSample

__all__ = ["growth_samples"]


def growth_samples(fields: Mapping[str, float], pools: int) -> tuple[GrowthSample, ...]:
    """Build the sample of each of an engine's pools from the fields of its last scan.

    Raises:
        KeyError, ValueError: the record lacks a field or has a wrong one.
    """
    return tuple(_sample(fields, pool) for pool in range(pools))


def _sample(fields: Mapping[str, float], pool: int) -> GrowthSample:
    def field(name: str) -> float:
        return fields[f"pool{pool}_growth_{name}"]

    return GrowthSample(
        pool=pool,
        taken={"decode": int(field("decode")), "prefill": int(field("prefill"))},
        freed=int(field("freed")),
        taken_per_s={"decode": field("decode_per_s"), "prefill": field("prefill_per_s")},
        freed_per_s=field("freed_per_s"),
        growth_per_s=field("per_s"),
        variance=field("variance"),
        weight=field("weight"),
    )
