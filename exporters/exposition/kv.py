"""A block pool's sample as metric families."""

from vramscope.exporters.catalog import kv as catalog
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.signals import kv as kv_signals
from vramscope.exporters.signals.kv_samples import CensusSample, KvSample, ReservationSample
from vramscope.exporters.signals.samples import EngineSample
from vramscope.exporters.signals.static_waste import static_waste

__all__ = ["add_kv", "add_kv_requests"]


def add_kv(families: Families, kv: KvSample, pool: tuple[str, ...]) -> None:
    """Add one pool; ``pool`` has the values of the pool's labels."""
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
    families.add(catalog.KV_SHARED, kv.shared, *pool)
    families.add(catalog.KV_SAVED, kv.saved, *pool)
    for length, slack in kv.slack_by_length.items():
        families.add(catalog.KV_LENGTH_SLACK, slack, *pool, length)
    for length, entries in kv.entries_by_length.items():
        families.add(catalog.KV_LENGTH_ENTRIES, entries, *pool, length)
    for group in kv.groups:
        families.add(catalog.KV_BLOCK_SIZE, group.block_size, *pool, str(group.group))
        labels = (*pool, str(group.group), group.kind)
        families.add(catalog.KV_GROUP_ENTRIES, group.entries, *labels)
    families.add(catalog.KV_EVICTIONS, kv.evictions, *pool)
    for reuse, ages in kv.evicted_age_s.items():
        families.add_sample(catalog.KV_EVICTED_AGE, ages, *pool, reuse)
    families.add(catalog.KV_RESURRECTIONS, kv.resurrections, *pool)
    if kv.census is not None:
        _add_census(families, kv.census, pool)


def _add_census(families: Families, census: CensusSample, pool: tuple[str, ...]) -> None:
    families.add(catalog.KV_CENSUS_AGE, census.age_s, *pool)
    families.add(catalog.KV_DUPLICATES, census.duplicates, *pool)
    families.add(catalog.KV_FREE_RUN, kv_signals.free_run_ratio(census), *pool)
    families.add(catalog.KV_OLDEST_EVICTABLE, census.oldest_evictable_s, *pool)
    for age, blocks in census.evictable_by_age.items():
        families.add(catalog.KV_EVICTABLE_BY_AGE, blocks, *pool, age)
    families.add(catalog.PROBE_DRIFT, census.drift, *pool)


def add_kv_requests(families: Families, sample: EngineSample, who: tuple[str, ...]) -> None:
    """Add what is of an engine's requests and not of a pool; ``who`` has the engine's labels."""
    for length, requests in sample.requests_by_length.items():
        families.add(catalog.KV_LENGTH_REQUESTS, requests, *who, length)
    if sample.reservation is not None:
        _add_reservation(
            families, sample.reservation, bool(sample.capabilities.get("refusals")), who
        )
    if sample.static_waste is not None:
        for allocator, ratio in static_waste(sample.static_waste).items():
            families.add(catalog.KV_STATIC_WASTE, ratio, *who, allocator)
        held, oracle = sample.static_waste.held_token_s, sample.static_waste.oracle_token_s
        families.add(catalog.KV_TOKEN_SECONDS, held, *who, "held")
        families.add(catalog.KV_TOKEN_SECONDS, oracle, *who, "oracle")


def _add_reservation(
    families: Families, reservation: ReservationSample, refusals: bool, who: tuple[str, ...]
) -> None:
    families.add(catalog.KV_RESERVATION, reservation.watermark, *who, "watermark")
    families.add(catalog.KV_RESERVATION, reservation.prefill, *who, "prefill")
    if refusals:
        for whose, count in reservation.refused.items():
            families.add(catalog.KV_REFUSED, count, *who, whose)
        families.add(catalog.KV_REFUSED_WANTS, reservation.wants, *who)
