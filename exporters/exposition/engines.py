"""An engine's sample as metric families, gated by what its probe could attach."""

from vramscope.exporters.catalog import engine as catalog
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.signals import kv as kv_signals
from vramscope.exporters.signals.rates import lora_hit_ratio, preemptions_per_100, recompute_tax
from vramscope.exporters.signals.samples import EngineSample, EngineState, KvSample, LoraSample

__all__ = ["add_engine"]


def add_engine(families: Families, sample: EngineSample) -> None:
    """Add all of one engine. A capability that is off has no sample but its own 0."""
    who = (sample.engine, sample.model, str(sample.dp_rank))
    can = sample.capabilities
    for feature, attached in can.items():
        families.add(catalog.PROBE_CAPABILITY, float(attached), *who, feature)
    if can.get("steps"):
        _add_steps(families, sample, who)
    if can.get("requests"):
        _add_requests(families, sample, who)
    if can.get("preemption"):
        _add_preemption(families, sample, who)
    if can.get("prefill"):
        families.add(catalog.PREFILL_TOKENS, sample.prefill_tokens, *who)
        families.add(catalog.RECOMPUTED_TOKENS, sample.recomputed_tokens, *who)
        tax = recompute_tax(sample.recomputed_tokens, sample.prefill_tokens)
        families.add(catalog.RECOMPUTE_TAX, tax, *who)
    for kv in sample.kv:
        _add_kv(families, kv, (*who, str(kv.pool)))
    if sample.kv:
        families.add(catalog.SIGNAL_AGE, sample.kv[0].age_s, *who, "kv")
    if sample.lora is not None:
        _add_lora(families, sample.lora, who)


def _add_steps(families: Families, sample: EngineSample, who: tuple[str, ...]) -> None:
    for state in EngineState:
        families.add(catalog.ENGINE_STATE, float(state is sample.state), *who, state)
    families.add(catalog.SIGNAL_AGE, sample.age_s, *who, "step")
    families.add(catalog.STEPS, sample.steps, *who)
    families.add(catalog.ENGINE_REQUESTS, sample.running, *who, "running")
    families.add(catalog.ENGINE_REQUESTS, sample.waiting, *who, "waiting")


def _add_requests(families: Families, sample: EngineSample, who: tuple[str, ...]) -> None:
    families.add(catalog.FIRST_SCHEDULES, sample.first_schedules, *who)
    families.add(catalog.CACHED_TOKENS, sample.cached_tokens, *who)
    families.add(catalog.GENERATED_TOKENS, sample.generated_tokens, *who)
    for how, count in sample.finished.items():
        families.add(catalog.FINISHED, count, *who, how)


def _add_kv(families: Families, kv: KvSample, pool: tuple[str, ...]) -> None:
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


def _add_preemption(families: Families, sample: EngineSample, who: tuple[str, ...]) -> None:
    for reason, count in sample.preemptions.items():
        families.add(catalog.PREEMPTIONS, count, *who, reason)
        frequency = preemptions_per_100(count, sample.first_schedules)
        families.add(catalog.PREEMPTION_FREQUENCY, frequency, *who, reason)
    families.add(catalog.PREEMPTED_TOKENS, sample.preempted_tokens, *who)


def _add_lora(families: Families, lora: LoraSample, who: tuple[str, ...]) -> None:
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
