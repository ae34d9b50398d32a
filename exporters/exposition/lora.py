"""An engine's adapters as metric families."""

from vramscope.exporters.catalog import lora as catalog
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.signals.rates import lora_hit_ratio
from vramscope.exporters.signals.samples import LoraSample

__all__ = ["add_lora"]


def add_lora(families: Families, lora: LoraSample, who: tuple[str, ...]) -> None:
    """Add the adapters of one engine; ``who`` has the values of the engine's labels."""
    for tier, count in lora.requests.items():
        families.add(catalog.LORA_REQUESTS, count, *who, tier)
    families.add(catalog.LORA_HIT, lora_hit_ratio(lora.requests), *who)
    for tier, count in lora.loads.items():
        families.add(catalog.LORA_LOADS, count, *who, tier)
    for tier, counts in lora.load_counts.items():
        families.add_histogram(
            catalog.LORA_LOAD_SECONDS,
            dict(zip(lora.load_bounds_s, counts, strict=True)),
            lora.loads[tier],
            lora.load_seconds[tier],
            *who,
            tier,
        )
    for adapter, tier in lora.resident.items():
        families.add(catalog.LORA_RESIDENT, 1, *who, adapter, tier)
    families.add(catalog.LORA_SLOTS, lora.gpu_slots, *who, "gpu")
    families.add(catalog.LORA_SLOTS, lora.cpu_slots, *who, "cpu")
