"""A block pool's growth as metric families."""

from vramscope.exporters.catalog import growth as catalog
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.signals.exhaustion import exhaustion
from vramscope.exporters.signals.kv import usable_blocks
from vramscope.exporters.signals.kv_samples import GrowthSample, KvSample

__all__ = ["add_growth"]


def add_growth(
    families: Families, growth: GrowthSample, kv: KvSample | None, pool: tuple[str, ...]
) -> None:
    """Add one pool; ``pool`` has the values of the pool's labels, ``kv`` its blocks if known."""
    for phase, blocks in growth.taken.items():
        families.add(catalog.KV_TAKEN, blocks, *pool, phase)
    families.add(catalog.KV_FREED, growth.freed, *pool)
    if growth.weight:
        flows = {**growth.taken_per_s, "freed": growth.freed_per_s}
        for flow, per_s in flows.items():
            families.add(catalog.KV_FLOW, per_s / growth.weight, *pool, flow)
    forecast = exhaustion(usable_blocks(kv), growth) if kv is not None else None
    if forecast is not None:
        for bound, seconds in forecast._asdict().items():
            families.add(catalog.KV_EXHAUSTION, seconds, *pool, bound)
