"""An engine's adapters as metric families."""

from collections import Counter
from collections.abc import Mapping

from vramscope.exporters.catalog import lora as catalog
from vramscope.exporters.catalog.metric import Metric
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.signals.lora_samples import AdapterSample, LoraSample
from vramscope.exporters.signals.rates import lora_hit_ratio

__all__ = ["add_lora"]

OTHER = "other"


def add_lora(families: Families, lora: LoraSample, who: tuple[str, ...]) -> None:
    """Add the adapters of one engine; ``who`` has the values of the engine's labels."""
    _add_each(families, catalog.LORA_REQUESTS, lora.requests, who)
    families.add(catalog.LORA_HIT, lora_hit_ratio(lora.requests), *who)
    _add_each(families, catalog.LORA_LOADS, lora.loads, who)
    for tier, counts in lora.load_counts.items():
        families.add_histogram(
            catalog.LORA_LOAD_SECONDS,
            dict(zip(lora.load_bounds_s, counts, strict=True)),
            lora.loads[tier],
            lora.load_seconds[tier],
            *who,
            tier,
        )
    _add_each(families, catalog.LORA_EVICTIONS, lora.evictions, who)
    _add_resident(families, lora, who)
    families.add(catalog.LORA_SLOTS, lora.gpu_slots, *who, "gpu")
    families.add(catalog.LORA_SLOTS, lora.cpu_slots, *who, "cpu")
    _add_each(families, catalog.LORA_SLOTS_USED, lora.slots_used, who)
    _add_each(families, catalog.LORA_ZOMBIES, lora.zombies, who)
    if lora.slot_waits is not None:
        families.add(catalog.LORA_SLOT_WAITS, lora.slot_waits.requests, *who)
        families.add(catalog.LORA_SLOT_WAIT_SECONDS, lora.slot_waits.seconds, *who)
        families.add(catalog.LORA_SLOT_WAITING, lora.slot_waits.waiting, *who)
    for name, adapter in lora.adapters.items():
        _add_adapter(families, adapter, (*who, name))


def _add_each(
    families: Families, metric: Metric, values: Mapping[str, float], who: tuple[str, ...]
) -> None:
    for tier, value in values.items():
        families.add(metric, value, *who, tier)


def _add_resident(families: Families, lora: LoraSample, who: tuple[str, ...]) -> None:
    """Add the adapters that have series of their own, and how many others there are."""
    others: Counter[str] = Counter()
    for adapter, tier in lora.resident.items():
        if adapter in lora.adapters and adapter != OTHER:
            families.add(catalog.LORA_RESIDENT, 1, *who, adapter, tier)
        else:
            others[tier] += 1
    for tier, count in others.items():
        families.add(catalog.LORA_RESIDENT, count, *who, OTHER, tier)


def _add_adapter(families: Families, adapter: AdapterSample, who: tuple[str, ...]) -> None:
    _add_each(families, catalog.LORA_ADAPTER_REQUESTS, adapter.requests, who)
    _add_each(families, catalog.LORA_ADAPTER_LOADS, adapter.loads, who)
    _add_each(families, catalog.LORA_ADAPTER_LOAD_SECONDS, adapter.load_seconds, who)
    _add_each(families, catalog.LORA_ADAPTER_EVICTIONS, adapter.evictions, who)
    families.add(catalog.LORA_ADAPTER_BYTES, adapter.bytes, *who)
    families.add(catalog.LORA_ADAPTER_RANK, adapter.rank, *who)
