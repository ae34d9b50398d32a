"""An engine's own page as metric families, each series marked ``source="native"``."""

from vramscope.exporters.catalog import engine as engine_catalog
from vramscope.exporters.catalog import kv as kv_catalog
from vramscope.exporters.catalog import lora as lora_catalog
from vramscope.exporters.catalog import native as catalog
from vramscope.exporters.catalog import offload as offload_catalog
from vramscope.exporters.catalog import preemption as preemption_catalog
from vramscope.exporters.engine.native.names import EXPECTED
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.refresh import NativeReading
from vramscope.exporters.signals.native import NativeSample
from vramscope.exporters.signals.offload import offload_hit_ratio

__all__ = ["PROBE_ONLY", "add_native_pages"]

SOURCE = "native"
PROBE_ONLY = (
    "blocks",
    "growth",
    "lora",
    "page_table",
    "preemption",
    "prefill",
    "requests",
    "steps",
    "vram",
    "waiting_reasons",
)
"""Features that take the probe: what a page says of them is less, and comes late."""
UNKNOWN = ""
"""A label that the page has no value for: left out."""


def add_native_pages(families: Families, native: NativeReading, now_s: float) -> None:
    """Add the families of each page.

    Args:
        families: where to.
        native: what the pages said.
        now_s: what ages are counted to, monotonic clock.
    """
    for page in native.pages:
        families.add(catalog.NATIVE_SUPERSEDED, float(page.superseded), page.source)
        for sample in page.samples:
            _add_native(families, page.engine, sample, max(0.0, now_s - page.at_s))


def _add_native(families: Families, engine: str, sample: NativeSample, age_s: float) -> None:
    """Add what one rank's page says; what it does not say is absent, never 0.

    Args:
        families: where to.
        engine: the ``engine`` label.
        sample: what the page said.
        age_s: time since it was answered.
    """
    who = (engine, sample.model, str(sample.dp_rank))
    families.add(engine_catalog.SIGNAL_AGE, age_s, *who, "native", SOURCE)
    for feature in PROBE_ONLY:
        families.add(engine_catalog.PROBE_CAPABILITY, 0, *who, feature, SOURCE)
    for field, metric in EXPECTED.items():
        known = getattr(sample, field) is not None
        families.add(catalog.NATIVE_INPUT, float(known), *who, metric)
    _add_requests(families, sample, who)
    _add_kv(families, sample, who)
    _add_offload(families, sample, who)
    families.add(lora_catalog.LORA_SLOTS, sample.lora_slots, *who, "gpu", SOURCE)


def _add_requests(families: Families, sample: NativeSample, who: tuple[str, ...]) -> None:
    families.add(engine_catalog.ENGINE_REQUESTS, sample.running, *who, "running", SOURCE)
    families.add(engine_catalog.ENGINE_REQUESTS, sample.waiting, *who, "waiting", SOURCE)
    families.add(engine_catalog.FINISHED, sample.finished, *who, "finished", SOURCE)
    families.add(engine_catalog.GENERATED_TOKENS, sample.generated_tokens, *who, SOURCE)
    families.add(catalog.PROMPT_TOKENS, sample.prompt_tokens, *who, SOURCE)
    families.add(engine_catalog.CACHED_TOKENS, sample.cached_tokens, *who, SOURCE)
    families.add(preemption_catalog.PREEMPTIONS, sample.preemptions, *who, UNKNOWN, SOURCE)


def _add_kv(families: Families, sample: NativeSample, who: tuple[str, ...]) -> None:
    families.add(catalog.KV_USAGE, sample.kv_usage_ratio, *who, SOURCE)
    families.add(catalog.KV_POOL_BLOCKS, sample.blocks, *who, SOURCE)
    size = sample.block_size
    families.add(kv_catalog.KV_BLOCK_SIZE, size, *who, UNKNOWN, UNKNOWN, SOURCE)


def _add_offload(families: Families, sample: NativeSample, who: tuple[str, ...]) -> None:
    it = (*who, UNKNOWN)  # which connector, the page does not say
    if sample.external_queried_tokens and sample.external_hit_tokens is not None:
        # Every page has the two; without a connector they stay 0.
        queried, hit = sample.external_queried_tokens, sample.external_hit_tokens
        families.add(offload_catalog.OFFLOAD_QUERIED_TOKENS, queried, *it, SOURCE)
        families.add(offload_catalog.OFFLOAD_HIT_TOKENS, hit, *it, UNKNOWN, SOURCE)
        families.add(offload_catalog.OFFLOAD_HIT, offload_hit_ratio(hit, queried), *it, SOURCE)
    moved = offload_catalog.OFFLOAD_BYTES
    families.add(moved, sample.offload_store_bytes, *it, "store", SOURCE)
    families.add(moved, sample.offload_load_bytes, *it, "load", SOURCE)
    took = offload_catalog.OFFLOAD_SECONDS
    families.add(took, sample.offload_store_seconds, *it, "store", SOURCE)
    families.add(took, sample.offload_load_seconds, *it, "load", SOURCE)
    refused = sample.offload_refused_full
    families.add(offload_catalog.OFFLOAD_REFUSED, refused, *it, UNKNOWN, "full", SOURCE)
    pinned = sample.offload_pinned_ratio
    families.add(offload_catalog.OFFLOAD_PRESSURE, pinned, *it, "cpu", SOURCE)
