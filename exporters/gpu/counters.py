"""Counters that only go up, made from counters that wrap, restart or change their source."""

from collections.abc import Hashable

__all__ = ["MonotonicCounters"]


class MonotonicCounters:
    """Follows raw counters by key and returns totals that never fall.

    The first value of a key is its total, so a restart of this program changes nothing. When a
    raw value falls:

    - from the upper half of its range (2^32, or 2^64 where it has been above 2^32; in raw units)
      to the lower half, the counter wrapped: what it counted is the way over the top;
    - else it restarted from 0 (the driver was reloaded, the GPU reset): it counted its value.

    When the source changes, what both count starts at different moments: the total goes on from
    where it was, and what happened between the two reads is lost.
    """

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[str, float]] = {}
        self._total: dict[Hashable, float] = {}

    def advance(self, key: Hashable, raw: float, source: str, scale: float = 1.0) -> float:
        """Take in a raw value; return the total.

        Args:
            key: which counter.
            raw: its value in the unit in which it wraps.
            source: who counted.
            scale: of the total's unit, e.g. 1024 when raw counts KiB and the total bytes.
        """
        if key not in self._total:
            self._total[key] = raw * scale
        else:
            before, last = self._last[key]
            step = 0.0
            if before == source:
                step = raw - last if raw >= last else _over_the_top(last, raw)
            self._total[key] += step * scale
        self._last[key] = (source, raw)
        return self._total[key]

    def forget(self, keep: set[Hashable]) -> None:
        """Drop the keys that are not in ``keep``."""
        for key in self._last.keys() - keep:
            del self._last[key], self._total[key]


def _over_the_top(last: float, raw: float) -> float:
    """Return what was counted between two values of which the second is lower."""
    top = 2.0**32 if last < 2.0**32 else 2.0**64
    wrapped = last >= top / 2 and raw < top / 2
    return top - last + raw if wrapped else raw
