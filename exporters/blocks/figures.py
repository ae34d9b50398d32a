"""The figures that stand beside a picture, as words."""

from collections.abc import Sequence

from vramscope.exporters.blocks.page_table import PageTable, Pool
from vramscope.exporters.blocks.usage import RequestUsage, free_runs, pool_sample, sharing
from vramscope.exporters.signals.kv import eviction_exposure, fragmentation_index, kv_waste

__all__ = ["amount", "pool_figures", "pool_title", "request_words"]


def amount(blocks: float) -> str:
    """Return a number of blocks, with a decimal where it is not whole.

    >>> amount(1023), amount(12.5)
    ('1,023', '12.5')
    """
    return f"{blocks:,.0f}" if blocks == int(blocks) else f"{blocks:,.1f}"


def pool_title(table: PageTable, pool: Pool) -> str:
    """Return what a pool is."""
    sizes = sorted({group.block_size for group in table.groups if group.pool == pool.index})
    tokens = " or ".join(map(str, sizes))
    name = f"Block pool {pool.index}: " if len(table.pools) > 1 else ""
    return f"{name}{len(pool.blocks):,} blocks of {tokens} tokens"


def pool_figures(pool: Pool) -> list[tuple[str, str]]:
    """Return (name, value) of what a pool adds up to; a ratio without meaning is left out."""
    kv = pool_sample(pool)
    runs = free_runs(pool.blocks)
    common = sharing(pool.blocks)
    ratios = [
        ("KV waste: slack / (live + slack)", kv_waste(kv)),
        ("fragmentation index", fragmentation_index(kv)),
        ("eviction exposure", eviction_exposure(kv)),
    ]
    figures = [(name, f"{value:.3f}") for name, value in ratios if value is not None]
    figures.append(("kept back from new requests", amount(kv.reserved)))
    figures.append(("longest free run, blocks", amount(runs[0] if runs else 0)))
    figures.append(("shared blocks", amount(common.shared)))
    figures.append(("blocks saved by sharing", amount(common.saved)))
    figures.append(("duplicates of other blocks", amount(common.duplicates)))
    return figures


def request_words(used: RequestUsage) -> Sequence[str]:
    """Return name, tokens, blocks and slack of a request; a dash where it is not known."""
    tokens, slack = used.request.computed_tokens, used.slack
    return (
        used.request.name[:8],
        "-" if tokens is None else f"{tokens:,}",
        amount(used.blocks),
        "-" if slack is None else f"{slack:.1f}",
    )
