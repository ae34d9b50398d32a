"""The ``/signals`` document: samples and the numbers derived from them, for other programs."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from vramscope.exporters.signals import kv as kv_signals
from vramscope.exporters.signals.exhaustion import exhaustion
from vramscope.exporters.signals.kv_samples import KvSample
from vramscope.exporters.signals.rates import lora_hit_ratio, preemptions_per_100, recompute_tax
from vramscope.exporters.signals.samples import EngineSample
from vramscope.exporters.signals.static_waste import static_waste

__all__ = ["SIGNALS_SCHEMA", "signals_document"]

SIGNALS_SCHEMA = 1


def signals_document(samples: Iterable[EngineSample]) -> dict[str, Any]:
    """Return a JSON-ready object: one entry an engine, with ``signals`` beside the sample.

    A signal whose denominator is zero is null.
    """
    return {"schema": SIGNALS_SCHEMA, "engines": [_engine(sample) for sample in samples]}


def _engine(sample: EngineSample) -> dict[str, Any]:
    document = asdict(sample)
    for entry, kv in zip(document["kv"], sample.kv, strict=True):
        entry["signals"] = _kv(kv)
    usable = {kv.pool: kv_signals.usable_blocks(kv) for kv in sample.kv}
    for entry, growth in zip(document["growth"], sample.growth, strict=True):
        forecast = exhaustion(usable[growth.pool], growth) if growth.pool in usable else None
        entry["exhaustion_seconds"] = None if forecast is None else forecast._asdict()
    document["signals"] = {
        "recompute_tax": recompute_tax(sample.recomputed_tokens, sample.prefill_tokens),
        "preemptions_per_100": preemptions_per_100(
            sum(sample.preemptions.values()), sample.first_schedules
        ),
        "static_waste": static_waste(sample.static_waste) if sample.static_waste else None,
        "lora_hit": lora_hit_ratio(sample.lora.requests) if sample.lora else None,
    }
    return document


def _kv(kv: KvSample) -> dict[str, float | None]:
    return {
        "fragmentation": kv_signals.fragmentation_index(kv),
        "slack": kv_signals.slack_ratio(kv),
        "lookahead": kv_signals.lookahead_ratio(kv),
        "reserved": kv_signals.reserved_ratio(kv),
        "held": kv_signals.held_ratio(kv),
        "waste": kv_signals.kv_waste(kv),
        "eviction_exposure": kv_signals.eviction_exposure(kv),
        "usable_blocks": kv_signals.usable_blocks(kv),
        "free_run": kv_signals.free_run_ratio(kv.census) if kv.census else None,
    }
