"""An engine's preemptions as metric families."""

from vramscope.exporters.catalog import preemption as catalog
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.signals.rates import preemptions_per_100, recompute_tax
from vramscope.exporters.signals.samples import EngineSample

__all__ = ["add_preemption", "add_prefill"]


def add_preemption(families: Families, sample: EngineSample, who: tuple[str, ...]) -> None:
    """Add the preemptions of one engine; ``who`` has the values of the engine's labels."""
    for reason, count in sample.preemptions.items():
        families.add(catalog.PREEMPTIONS, count, *who, reason)
        frequency = preemptions_per_100(count, sample.first_schedules)
        families.add(catalog.PREEMPTION_FREQUENCY, frequency, *who, reason)
    families.add(catalog.PREEMPTED_TOKENS, sample.preempted_tokens, *who)


def add_prefill(families: Families, sample: EngineSample, who: tuple[str, ...]) -> None:
    """Add the prefill tokens of one engine, and which of them were computed before."""
    families.add(catalog.PREFILL_TOKENS, sample.prefill_tokens, *who)
    families.add(catalog.RECOMPUTED_TOKENS, sample.recomputed_tokens, *who)
    tax = recompute_tax(sample.recomputed_tokens, sample.prefill_tokens)
    families.add(catalog.RECOMPUTE_TAX, tax, *who)
