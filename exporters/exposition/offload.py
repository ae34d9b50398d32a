"""KV cache outside the GPU as metric families."""

from vramscope.exporters.catalog import offload as catalog
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.signals.offload import offload_hit_ratio, offload_pressure
from vramscope.exporters.signals.offload_samples import OffloadSample, OffloadTier

__all__ = ["add_offload"]

TIER = "cpu"
"""The tier that vLLM's own manager keeps next to the GPU."""


def add_offload(families: Families, sample: OffloadSample, who: tuple[str, ...]) -> None:
    """Add what the connector was asked and found, what it moved, and its tier."""
    it = (*who, sample.connector)
    hits = sum(sample.hit_tokens.values())
    families.add(catalog.OFFLOAD_QUERIED_TOKENS, sample.queried_tokens, *it)
    for tier, tokens in sample.hit_tokens.items():
        families.add(catalog.OFFLOAD_HIT_TOKENS, tokens, *it, tier)
    families.add(catalog.OFFLOAD_HIT, offload_hit_ratio(hits, sample.queried_tokens), *it)
    for way, moved in sample.moved_bytes.items():
        families.add(catalog.OFFLOAD_BYTES, moved, *it, way)
    for way, took in sample.moved_seconds.items():
        families.add(catalog.OFFLOAD_SECONDS, took, *it, way)
    if sample.tier is not None:
        _add_tier(families, sample.tier, (*it, TIER))


def _add_tier(families: Families, tier: OffloadTier, it: tuple[str, ...]) -> None:
    for state, blocks in (("cached", tier.cached), ("pinned", tier.pinned), ("clean", tier.clean)):
        families.add(catalog.OFFLOAD_TIER_BLOCKS, blocks, *it, state)
    families.add(catalog.OFFLOAD_BLOCKS, tier.stored, *it, "store")
    families.add(catalog.OFFLOAD_BLOCKS, tier.loaded, *it, "load")
    families.add(catalog.OFFLOAD_EVICTIONS, tier.evicted, *it)
    families.add(catalog.OFFLOAD_REFUSED, tier.refused, *it, "full")
    families.add(catalog.OFFLOAD_PRESSURE, offload_pressure(tier), *it)
