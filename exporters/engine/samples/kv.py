"""The samples of what an engine's block manager says."""

import math
from collections.abc import Mapping
from typing import Any

from vramscope.exporters.engine.samples.histogram import histogram_sample
from vramscope.exporters.signals.kv_samples import (
    CensusSample,
    KvGroupSample,
    KvSample,
    ReservationSample,
    StaticWasteSample,
)

__all__ = ["by_bound", "kv_samples", "reservation_sample", "static_waste_sample"]

REUSE = ("hit", "never_hit")


def kv_samples(
    header: Mapping[str, Any], fields: Mapping[str, float], now_s: float, age_s: float
) -> tuple[KvSample, ...]:
    """Build the sample of each block pool.

    Args:
        header: the engine record's header.
        fields: of its last step and scan.
        now_s: the host's monotonic clock, seconds.
        age_s: time since the scan; 0 while nothing can have changed.

    Raises:
        KeyError, TypeError, ValueError: the record lacks a field or has a wrong one.
    """
    return tuple(
        _pool(header, fields, pool, now_s, age_s) for pool, _ in enumerate(header["pools"])
    )


def _pool(
    header: Mapping[str, Any], fields: Mapping[str, float], pool: int, now_s: float, age_s: float
) -> KvSample:
    prefix = f"pool{pool}_"
    field = {
        name.removeprefix(prefix): value
        for name, value in fields.items()
        if name.startswith(prefix)
    }
    return KvSample(
        pool=pool,
        blocks=int(field["blocks"]),
        live=field["live"],
        slack=field["slack"],
        lookahead=field["lookahead"],
        held=int(field["held"]),
        evictable=int(field["evictable"]),
        clean=int(field["clean"]),
        reserved=int(field["reserved"]),
        age_s=age_s,
        evictions=int(field["evictions"]),
        resurrections=int(field["resurrections"]),
        shared=int(field["shared"]),
        saved=int(field["extra_references"]),
        evicted_age_s={reuse: histogram_sample(field, f"evicted_{reuse}_age_s") for reuse in REUSE},
        slack_by_length={
            bound: field[f"slack_le_{suffix}"] for bound, suffix in _bounds(field, "slack")
        },
        entries_by_length=by_bound(field, "entries"),
        groups=tuple(
            KvGroupSample(
                group=int(group["group"]),
                kind=str(group["kind"]),
                block_size=int(group["block_size"]),
                entries=int(fields[f"group{index}_entries"]),
            )
            for index, group in enumerate(header["groups"])
            if group["pool"] == pool
        ),
        census=_census(field, now_s),
    )


def _census(field: Mapping[str, float], now_s: float) -> CensusSample | None:
    if math.isnan(field["census_begun_s"]):
        return None
    return CensusSample(
        age_s=max(0.0, now_s - field["census_begun_s"]),
        drift=int(field["drift"]),
        duplicates=_whole(field["duplicates"]),
        free=int(field["free_seen"]),
        free_run=int(field["free_run"]),
        oldest_evictable_s=_known(field["oldest_evictable_s"]),
        evictable_by_age=by_bound(field, "evictable_age"),
    )


def reservation_sample(fields: Mapping[str, float]) -> ReservationSample:
    """Build the sample from the fields of an engine's last scan.

    Raises:
        KeyError, ValueError: the record lacks a field or has a wrong one.
    """
    return ReservationSample(
        watermark=int(fields["reservation_watermark"]),
        prefill=int(fields["reservation_prefill"]),
        refused={
            whose: int(fields[f"reservation_refused_{whose}"]) for whose in ("waiting", "running")
        },
        wants=_whole(fields["reservation_refused_wants"]),
    )


def static_waste_sample(fields: Mapping[str, float]) -> StaticWasteSample:
    """Build the sample from the fields of an engine's last scan.

    Raises:
        KeyError, ValueError: the record lacks a field or has a wrong one.
    """
    return StaticWasteSample(
        tokens=int(fields["static_tokens"]),
        reserved={
            allocator: int(fields[f"static_{allocator}"])
            for allocator in ("max_model_len", "power_of_two")
        },
        held_token_s=fields["static_held_token_seconds"],
        oracle_token_s=fields["static_oracle_token_seconds"],
    )


def by_bound(fields: Mapping[str, float], name: str) -> dict[str, int]:
    """Return whole numbers by the upper bound of their class, which is in their fields' names."""
    return {bound: int(fields[f"{name}_le_{suffix}"]) for bound, suffix in _bounds(fields, name)}


def _bounds(fields: Mapping[str, float], name: str) -> list[tuple[str, str]]:
    """Return (label, suffix) of each class: the last has no bound."""
    prefix = f"{name}_le_"
    suffixes = [field.removeprefix(prefix) for field in fields if field.startswith(prefix)]
    return [("+Inf" if suffix == "inf" else suffix, suffix) for suffix in suffixes]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _whole(value: float) -> int | None:
    return None if math.isnan(value) else int(value)
