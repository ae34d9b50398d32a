"""An engine's preemptions as metric families."""

from vramscope.exporters.catalog import load as load_catalog
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
    more = sample.preemption
    if more is None:
        return
    families.add(catalog.PREEMPTION_REHIT, more.rehit_tokens, *who)
    families.add(catalog.PREEMPTION_ABANDONED, more.abandoned_tokens, *who)
    families.add(catalog.PREEMPTION_VICTIMS, more.victims, *who)
    families.add(catalog.PREEMPTION_REPEATS, more.repeats, *who)
    families.add(catalog.PREEMPTION_MOST, more.most, *who)
    families.add(catalog.PREEMPTION_WAITING, more.waiting, *who)
    families.add(catalog.PREEMPTION_ENDS, more.resumed, *who, "resumed")
    families.add(catalog.PREEMPTION_ENDS, more.left, *who, "left")
    families.add_sample(catalog.PREEMPTION_RESUMPTION, more.resumption_s, *who)
    families.add_sample(catalog.PREEMPTION_VICTIM_AGE, more.victim_age_s, *who)


def add_prefill(families: Families, sample: EngineSample, who: tuple[str, ...]) -> None:
    """Add the tokens of one engine by phase, and which of them were computed before."""
    families.add(catalog.PREFILL_TOKENS, sample.prefill_tokens, *who)
    families.add(catalog.RECOMPUTED_TOKENS, sample.recomputed_tokens, *who)
    tax = recompute_tax(sample.recomputed_tokens, sample.prefill_tokens)
    families.add(catalog.RECOMPUTE_TAX, tax, *who)
    if sample.load is not None:
        families.add(load_catalog.DECODE_TOKENS, sample.load.decode_tokens, *who)
