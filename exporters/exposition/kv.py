"""A block pool's sample as metric families."""

from vramscope.exporters.catalog import kv as catalog
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.signals import kv as kv_signals
from vramscope.exporters.signals.samples import KvSample

__all__ = ["add_kv"]


def add_kv(families: Families, kv: KvSample, pool: tuple[str, ...]) -> None:
    """Add one pool; ``pool`` has the values of the pool's labels."""
    for state in ("live", "slack", "held", "evictable", "clean"):
        families.add(catalog.KV_BLOCKS, getattr(kv, state), *pool, state)
    families.add(catalog.KV_FRAGMENTATION, kv_signals.fragmentation_index(kv), *pool)
    families.add(catalog.KV_SLACK, kv_signals.slack_ratio(kv), *pool)
    families.add(catalog.KV_LOOKAHEAD, kv_signals.lookahead_ratio(kv), *pool)
    families.add(catalog.KV_RESERVED, kv_signals.reserved_ratio(kv), *pool)
    families.add(catalog.KV_HELD, kv_signals.held_ratio(kv), *pool)
    families.add(catalog.KV_WASTE, kv_signals.kv_waste(kv), *pool)
    families.add(catalog.KV_EVICTION_EXPOSURE, kv_signals.eviction_exposure(kv), *pool)
    families.add(catalog.KV_USABLE_BLOCKS, kv_signals.usable_blocks(kv), *pool)
    for group, size in enumerate(kv.block_sizes):
        families.add(catalog.KV_BLOCK_SIZE, size, *pool, str(group))
    families.add(catalog.KV_EVICTIONS, kv.evictions, *pool)
    families.add(catalog.KV_RESURRECTIONS, kv.resurrections, *pool)
    families.add(catalog.PROBE_DRIFT, kv.drift, *pool)
