"""A page table as JSON: the numbers behind the picture."""

from typing import Any

from vramscope.exporters.blocks.page_table import PageTable, Pool
from vramscope.exporters.blocks.usage import free_runs, pool_sample, request_usage, sharing
from vramscope.exporters.signals.kv import eviction_exposure, fragmentation_index, kv_waste

__all__ = ["document"]


def document(table: PageTable, age_s: float) -> dict[str, Any]:
    """Return the page table as JSON values, blocks in columns.

    Args:
        table: the page table.
        age_s: time since its moment.
    """
    return {
        "engine": table.engine,
        "model": table.model,
        "vllm_version": table.vllm_version,
        "time_unix_s": table.time_unix_s,
        "age_s": age_s,
        "copy_s": table.took_s,
        "groups": [group._asdict() for group in table.groups],
        "pools": [_pool(pool) for pool in table.pools],
        "requests": [request._asdict() for request in table.requests],
        "tables": [row._asdict() for row in table.tables],
        "usage": [
            {**used._asdict(), "request": used.request.name} for used in request_usage(table)
        ],
    }


def _pool(pool: Pool) -> dict[str, Any]:
    kv = pool_sample(pool)
    blocks = pool.blocks
    return {
        "blocks": kv.blocks,
        "live": kv.live,
        "slack": kv.slack,
        "held": kv.held,
        "evictable": kv.evictable,
        "clean": kv.clean,
        "reserved": kv.reserved,
        "fragmentation": fragmentation_index(kv),
        "waste": kv_waste(kv),
        "eviction_exposure": eviction_exposure(kv),
        "largest_free_run": next(iter(free_runs(blocks)), 0),
        **sharing(blocks)._asdict(),
        "block": {
            "number": [block.number for block in blocks],
            "state": [block.state for block in blocks],
            "fill": [block.fill for block in blocks],
            "references": [block.references for block in blocks],
            "twin": [block.twin for block in blocks],
            "holders": [block.holders for block in blocks],
        },
    }
