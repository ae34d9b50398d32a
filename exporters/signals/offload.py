"""KV cache outside the GPU: how often it helps and how near a tier is to refusing. Pure."""

from vramscope.exporters.signals.offload_samples import OffloadTier

__all__ = ["offload_hit_ratio", "offload_pressure"]


def offload_hit_ratio(hit_tokens: float, queried_tokens: float) -> float | None:
    """Return the share of the tokens looked up outside the GPU that were found there.

    Args:
        hit_tokens: found and taken.
        queried_tokens: prompt tokens not in GPU memory, at first schedule.

    >>> offload_hit_ratio(hit_tokens=160, queried_tokens=640)
    0.25
    """
    return hit_tokens / queried_tokens if queried_tokens else None


def offload_pressure(tier: OffloadTier) -> float | None:
    """Return the share of a tier that transfers hold: at 1 it refuses what is to be stored.

    >>> offload_pressure(OffloadTier(blocks=8, cached=5, pinned=2))
    0.25
    """
    return tier.pinned / tier.blocks if tier.blocks else None
