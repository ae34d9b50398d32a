"""Which DCGM fields are read, and what each of them fills, by numeric id.

Ids never change their meaning or unit; names do (DCGM 4.6 renamed most constants), and DCGM 4.7
gives eleven quantities and the throttle times a second id in base units (``SUCCESSORS``). The
units here are those of the original ids, as DCGM up to 4.6 has them.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

__all__ = [
    "LINK_FILLS",
    "LINK_RATES",
    "NVLINK_MB",
    "PER_LINK_ERRORS",
    "PROFILING",
    "QUANTITIES",
    "SUCCESSORS",
    "THROTTLE_MASK",
    "UNLISTED_PROFILING",
    "WATCHED",
    "XID",
    "Quantity",
    "Successor",
    "per_link_ids",
]

MIB = 1 << 20
NVLINK_MB = 1_024_000
"""Bytes of what DCGM calls a megabyte of NVLink traffic: it divides KiB by 1000."""

XID = 230
THROTTLE_MASK = 112


class Quantity(NamedTuple):
    """Where a field's value goes in a ``GpuSample``: value * times / over, in its unit there."""

    field: str
    """Of the sample; ``pcie.`` for its PCIe link."""
    key: str | tuple[str, str] = ""
    """In the field's mapping; empty where the field is one value."""
    times: int = 1
    over: int = 1

    def to_unit(self, value: float) -> float:
        """Return the sample's value for DCGM's."""
        return value * self.times / self.over

    def from_unit(self, value: float) -> float:
        """Return DCGM's value for the sample's."""
        return value * self.over / self.times


MHZ, MEGABYTE_PER_S = 1_000_000, NVLINK_MB
NS = 1_000_000_000

QUANTITIES: Mapping[int, Quantity] = {
    250: Quantity("memory_bytes", "total", MIB),
    251: Quantity("memory_bytes", "free", MIB),
    252: Quantity("memory_bytes", "used", MIB),
    253: Quantity("memory_bytes", "reserved", MIB),
    203: Quantity("utilization_ratio", "gpu", over=100),
    204: Quantity("utilization_ratio", "memory_copy", over=100),
    206: Quantity("utilization_ratio", "encoder", over=100),
    207: Quantity("utilization_ratio", "decoder", over=100),
    1001: Quantity("activity_ratio", "graphics"),
    1002: Quantity("activity_ratio", "sm"),
    1003: Quantity("activity_ratio", "sm_occupancy"),
    1004: Quantity("activity_ratio", "tensor"),
    1005: Quantity("activity_ratio", "dram"),
    100: Quantity("clock_hz", "sm", MHZ),
    101: Quantity("clock_hz", "memory", MHZ),
    150: Quantity("temperature_celsius", "gpu"),
    140: Quantity("temperature_celsius", "memory"),
    155: Quantity("power_watts"),
    156: Quantity("energy_joules_total", over=1000),
    1420: Quantity("throttle_seconds_total", "software_power_cap", over=NS),
    1421: Quantity("throttle_seconds_total", "sync_boost", over=NS),
    1422: Quantity("throttle_seconds_total", "software_thermal", over=NS),
    1423: Quantity("throttle_seconds_total", "hardware_thermal", over=NS),
    1424: Quantity("throttle_seconds_total", "hardware_power_brake", over=NS),
    240: Quantity("throttle_seconds_total", "software_power_cap", over=NS),
    241: Quantity("throttle_seconds_total", "thermal", over=NS),
    242: Quantity("throttle_seconds_total", "sync_boost", over=NS),
    243: Quantity("throttle_seconds_total", "board_limit", over=NS),
    244: Quantity("throttle_seconds_total", "low_utilization", over=NS),
    245: Quantity("throttle_seconds_total", "reliability", over=NS),
    310: Quantity("ecc_errors_total", ("corrected", "volatile")),
    311: Quantity("ecc_errors_total", ("uncorrected", "volatile")),
    312: Quantity("ecc_errors_total", ("corrected", "aggregate")),
    313: Quantity("ecc_errors_total", ("uncorrected", "aggregate")),
    393: Quantity("remapped_rows_total", "uncorrectable"),
    394: Quantity("remapped_rows_total", "correctable"),
    395: Quantity("row_remap_failed"),
    396: Quantity("row_remap_pending"),
    1091: Quantity("pcie.bytes_total", "tx"),
    1092: Quantity("pcie.bytes_total", "rx"),
    1009: Quantity("pcie.bytes_per_second", "tx"),
    1010: Quantity("pcie.bytes_per_second", "rx"),
    237: Quantity("pcie.generation"),
    235: Quantity("pcie.max_generation"),
    238: Quantity("pcie.width"),
    236: Quantity("pcie.max_width"),
    202: Quantity("pcie.replays_total"),
    1201: Quantity("nvlink_bytes_total", "tx"),
    1203: Quantity("nvlink_bytes_total", "rx"),
    1011: Quantity("nvlink_bytes_per_second", "tx"),
    1012: Quantity("nvlink_bytes_per_second", "rx"),
    843: Quantity("nvlink_bytes_per_second", "tx", MEGABYTE_PER_S),
    897: Quantity("nvlink_bytes_per_second", "rx", MEGABYTE_PER_S),
    409: Quantity("nvlink_errors_total", "crc_flit"),
    419: Quantity("nvlink_errors_total", "crc_data"),
    429: Quantity("nvlink_errors_total", "replay"),
    439: Quantity("nvlink_errors_total", "recovery"),
    1076: Quantity("c2c_bytes_per_second", "tx"),
    1078: Quantity("c2c_bytes_per_second", "rx"),
}
"""By field id. Of two fields with one place, the first that has a value fills it."""

WATCHED = (*QUANTITIES, THROTTLE_MASK)
"""What is read without being asked for; ``XID`` has a watch of its own."""

LINK_RATES = frozenset((449, 843, 897, *range(440, 449), *range(475, 481), *range(494, 497)))
"""Rates that DCGM makes from two counts: a 0 is the first value of each, and means nothing."""

PROFILING = range(1001, 1100)
UNLISTED_PROFILING = frozenset((*range(1084, 1097), 1532, 1533))
"""Profiling fields that DCGM has but does not list among a GPU's supported groups."""


class Successor(NamedTuple):
    """The id that DCGM 4.7 adds for a quantity: original = value * times / over."""

    field_id: int
    times: int = 1
    over: int = 1


SUCCESSORS: Mapping[int, Successor] = {
    100: Successor(1603, over=MHZ),
    101: Successor(1604, over=MHZ),
    156: Successor(1611, times=1000),
    203: Successor(1613, times=100),
    204: Successor(1614, times=100),
    206: Successor(1615, times=100),
    207: Successor(1616, times=100),
    **{240 + place: Successor(1617 + place, times=NS) for place in range(8)},
    **{250 + place: Successor(1625 + place, over=MIB) for place in range(4)},
    449: Successor(1648, over=NVLINK_MB),
}
"""By original id: read where the host engine no longer knows the original."""

LINK_FILLS: Mapping[int, Quantity] = {
    1532: Quantity("bytes_per_second", "tx"),
    1533: Quantity("bytes_per_second", "rx"),
    1525: Quantity("errors_total", "crc_flit"),
    1526: Quantity("errors_total", "crc_data"),
    1527: Quantity("errors_total", "replay"),
    1528: Quantity("errors_total", "recovery"),
}
"""Fields of a LINK entity, which DCGM has since 4.6: what each fills of a ``LinkSample``."""


def _ids(*ranges: tuple[int, int]) -> tuple[int, ...]:
    return tuple(i for first, last in ranges for i in range(first, last + 1))


PER_LINK_ERRORS: Mapping[str, tuple[int, ...]] = {
    "crc_flit": _ids((400, 405), (451, 456), (406, 408), (481, 483)),
    "crc_data": _ids((410, 415), (457, 462), (416, 418), (484, 486)),
    "replay": _ids((420, 425), (463, 468), (426, 428), (487, 489)),
    "recovery": _ids((430, 435), (469, 474), (436, 438), (491, 493)),
}
"""Fields of a GPU, by kind, one for each of its links 0 to 17."""

PER_LINK_RATE = 1040
LINKS = 18


def per_link_ids() -> Iterator[tuple[int, int, Quantity]]:
    """Yield (field id, link, what it fills of a ``LinkSample``) of a GPU's per-link fields."""
    for link in range(LINKS):
        for place, direction in enumerate(("tx", "rx")):
            yield (
                PER_LINK_RATE + 2 * link + place,
                link,
                Quantity("bytes_per_second", direction),
            )
        for kind, ids in PER_LINK_ERRORS.items():
            yield ids[link], link, Quantity("errors_total", kind)
