"""The sample of each block pool."""

from collections.abc import Mapping
from typing import Any

from vramscope.exporters.signals.samples import KvSample

__all__ = ["kv_samples"]


def kv_samples(
    header: Mapping[str, Any], fields: Mapping[str, float], age_s: float
) -> tuple[KvSample, ...]:
    """Build the sample of each block pool.

    Args:
        header: the engine record's header.
        fields: of its last step and scan.
        age_s: time since the scan.

    Raises:
        KeyError, TypeError, ValueError: the record lacks a field or has a wrong one.
    """
    samples = []
    for pool, _ in enumerate(header["pools"]):
        field = {
            name.removeprefix(f"pool{pool}_"): value
            for name, value in fields.items()
            if name.startswith(f"pool{pool}_")
        }
        drift = int(field["drift"])
        samples.append(
            KvSample(
                pool=pool,
                blocks=int(field["blocks"]),
                live=field["live"],
                slack=field["slack"],
                lookahead=field["lookahead"],
                held=int(field["held"]),
                evictable=int(field["evictable"]),
                clean=int(field["clean"]),
                reserved=int(field["reserved"]),
                age_s=age_s,
                evictions=int(field["evictions"]),
                resurrections=int(field["resurrections"]),
                drift=drift if drift >= 0 else None,
                block_sizes=tuple(
                    int(group["block_size"]) for group in header["groups"] if group["pool"] == pool
                ),
            )
        )
    return tuple(samples)
