"""An engine's sample as metric families, gated by what its probe could attach."""

from vramscope.exporters.catalog import engine as catalog
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.exposition.growth import add_growth
from vramscope.exporters.exposition.kv import add_kv, add_kv_requests
from vramscope.exporters.exposition.load import add_queue, add_steps
from vramscope.exporters.exposition.lora import add_lora
from vramscope.exporters.exposition.offload import add_offload
from vramscope.exporters.exposition.preemption import add_preemption, add_prefill
from vramscope.exporters.exposition.vram import add_vram
from vramscope.exporters.signals.samples import EngineSample, EngineState

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
        add_preemption(families, sample, who)
    if can.get("prefill"):
        add_prefill(families, sample, who)
    _add_pools(families, sample, who)
    if sample.lora is not None:
        add_lora(families, sample.lora, who)
    add_vram(families, sample.vram, who)
    if sample.offload is not None:
        add_offload(families, sample.offload, who)


def _add_steps(families: Families, sample: EngineSample, who: tuple[str, ...]) -> None:
    for state in EngineState:
        families.add(catalog.ENGINE_STATE, float(state is sample.state), *who, state)
    families.add(catalog.SIGNAL_AGE, sample.age_s, *who, "step")
    families.add(catalog.STEPS, sample.steps, *who)
    families.add(catalog.ENGINE_REQUESTS, sample.running, *who, "running")
    families.add(catalog.ENGINE_REQUESTS, sample.waiting, *who, "waiting")
    if sample.load is not None:
        add_steps(families, sample.load, who)


def _add_requests(families: Families, sample: EngineSample, who: tuple[str, ...]) -> None:
    families.add(catalog.FIRST_SCHEDULES, sample.first_schedules, *who)
    families.add(catalog.CACHED_TOKENS, sample.cached_tokens, *who)
    families.add(catalog.GENERATED_TOKENS, sample.generated_tokens, *who)
    for how, count in sample.finished.items():
        families.add(catalog.FINISHED, count, *who, how)
    if sample.load is not None:
        add_queue(families, sample.load, who, bool(sample.capabilities.get("waiting_reasons")))


def _add_pools(families: Families, sample: EngineSample, who: tuple[str, ...]) -> None:
    for kv in sample.kv:
        add_kv(families, kv, (*who, str(kv.pool)))
    kv_of = {kv.pool: kv for kv in sample.kv}
    for growth in sample.growth:
        add_growth(families, growth, kv_of.get(growth.pool), (*who, str(growth.pool)))
    if sample.kv:
        families.add(catalog.SIGNAL_AGE, sample.kv[0].age_s, *who, "kv")
        add_kv_requests(families, sample, who)
