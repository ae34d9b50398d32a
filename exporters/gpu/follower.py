"""From one reading to the next: counters that only go up, and the rates that follow from them."""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TypeVar

from vramscope.exporters.gpu.counters import MonotonicCounters
from vramscope.exporters.gpu.rates import Rates
from vramscope.exporters.signals.gpu import GpuReading, GpuSample, LinkSample, PcieSample

__all__ = ["GpuFollower"]

FORGET_AFTER_S = 600.0
"""How long a GPU that isn't read keeps its totals, so that one that comes back goes on."""
MILLIJOULE = 1e-3

K = TypeVar("K", bound=Hashable)


class GpuFollower:
    """Outlives sources: a change of source resets no counter. One thread at a time."""

    def __init__(self) -> None:
        self._counters = MonotonicCounters()
        self._rates = Rates()
        self._seen: dict[Hashable, tuple[str, float]] = {}
        self._xids: dict[tuple[str, int], int] = {}
        self._indexes: dict[str, int] = {}
        self._source = ""

    def follow(self, reading: GpuReading, source: str) -> GpuReading:
        """Return the reading with totals for its counters and with rates where it had none.

        Args:
            reading: as the source gave it.
            source: the source's name.
        """
        if source != self._source:
            self._rates = Rates()  # totals stand still over the change: that is no rate of 0
            self._source = source
        samples = tuple(self._sample(sample, source) for sample in reading.samples)
        self._indexes.update(reading.indexes)
        self._indexes.update((sample.gpu.uuid, sample.gpu.index) for sample in samples)
        for key, count in reading.xids.items():
            # Events are counted from 0 and over changes of source, by the one that chooses it.
            self._xids[key] = round(self._counters.advance(("xid", *key), count, "events"))
        self._forget(max((sample.read_at_s for sample in samples), default=None))
        return replace(reading, samples=samples, xids=dict(self._xids), indexes=dict(self._indexes))

    def _sample(self, sample: GpuSample, source: str) -> GpuSample:
        uuid, now_s = sample.gpu.uuid, sample.read_at_s

        def total(name: Hashable, raw: float, scale: float = 1.0) -> float:
            key = (uuid, name)
            self._seen[key] = (uuid, now_s)
            return self._counters.advance(key, raw / scale, source, scale)

        def totals(name: str, raws: Mapping[K, float]) -> dict[K, float]:
            return {key: total((name, key), raw) for key, raw in raws.items()}

        def rates(name: str, totals: Mapping[str, float]) -> dict[str, float]:
            found = {
                way: self._rates.update((uuid, (name, way)), value, now_s)
                for way, value in totals.items()
            }
            return {way: rate for way, rate in found.items() if rate is not None}

        def pcie(raw: PcieSample) -> PcieSample:
            sums = totals("pcie", raw.bytes_total)
            replays = raw.replays_total
            return replace(
                raw,
                bytes_total=sums,
                bytes_per_second=rates("pcie", sums) | dict(raw.bytes_per_second),
                replays_total=None if replays is None else total("pcie_replays", replays),
            )

        def link(raw: LinkSample) -> LinkSample:
            if not raw.bytes_total and not raw.errors_total:
                return raw
            sums = totals(f"nvlink{raw.link}", raw.bytes_total)
            return replace(
                raw,
                bytes_total=sums,
                bytes_per_second=rates(f"nvlink{raw.link}", sums) | dict(raw.bytes_per_second),
                errors_total=totals(f"nvlink{raw.link}_errors", raw.errors_total),
            )

        nvlink = totals("nvlink", sample.nvlink_bytes_total)
        energy = sample.energy_joules_total
        return replace(
            sample,
            energy_joules_total=None if energy is None else total("energy", energy, MILLIJOULE),
            throttle_seconds_total=totals("throttle", sample.throttle_seconds_total),
            ecc_errors_total=totals("ecc", sample.ecc_errors_total),
            remapped_rows_total=totals("rows", sample.remapped_rows_total),
            pcie=pcie(sample.pcie),
            nvlink_bytes_total=nvlink,
            nvlink_bytes_per_second=rates("nvlink", nvlink) | dict(sample.nvlink_bytes_per_second),
            nvlink_errors_total=totals("nvlink_errors", sample.nvlink_errors_total),
            links=tuple(map(link, sample.links)),
        )

    def _forget(self, now_s: float | None) -> None:
        """Drop what belongs to GPUs (or MIG instances) that have left."""
        if now_s is None:
            return
        gone = {key for key, (_, at_s) in self._seen.items() if now_s - at_s > FORGET_AFTER_S}
        if gone:
            for key in gone:
                del self._seen[key]
            keep = set(self._seen)
            self._rates.forget(keep)
            self._counters.forget(keep | {("xid", *key) for key in self._xids})
