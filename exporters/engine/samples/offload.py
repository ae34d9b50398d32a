"""The sample of KV cache outside the GPU."""

from collections.abc import Mapping
from typing import Any

from vramscope.exporters.signals.offload_samples import OffloadSample, OffloadTier

__all__ = ["offload_sample"]

HIT_TIER = "offload_hit_tokens_"
DIRECTIONS = ("store", "load")


def offload_sample(
    header: Mapping[str, Any], fields: Mapping[str, float], capabilities: Mapping[str, bool]
) -> OffloadSample | None:
    """Build the sample; None where the engine has no connector, or its lookups are not seen.

    Raises:
        KeyError, ValueError: the record lacks a field or has a wrong one.
    """
    if not capabilities.get("offload"):
        return None
    hits = {
        name.removeprefix(HIT_TIER): int(value)
        for name, value in fields.items()
        if name.startswith(HIT_TIER) and value  # of a tier that was never named, 0 is not known
    }
    total = int(fields["offload_hit_tokens"])
    moved = capabilities.get("offload_transfers")
    return OffloadSample(
        connector=str(header.get("kv_connector") or ""),
        queried_tokens=int(fields["offload_queried_tokens"]),
        hit_tokens={**hits, "unspecified": total - sum(hits.values())},
        moved_bytes={way: int(fields[f"offload_{way}_bytes"]) for way in DIRECTIONS if moved},
        moved_seconds={way: fields[f"offload_{way}_seconds"] for way in DIRECTIONS if moved},
        tier=_tier(fields) if capabilities.get("offload_tier") else None,
    )


def _tier(fields: Mapping[str, float]) -> OffloadTier:
    def field(name: str) -> int:
        return int(fields[f"offload_tier_{name}"])

    return OffloadTier(
        blocks=field("blocks"),
        cached=field("cached"),
        pinned=field("pinned"),
        stored=field("stored"),
        loaded=field("loaded"),
        evicted=field("evicted"),
        refused=field("refused"),
    )
