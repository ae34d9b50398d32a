"""Bytes per second from two readings of a counter and their times."""

from collections.abc import Hashable

__all__ = ["Rates"]


class Rates:
    """Remembers the last reading of each counter; counters are those that only go up."""

    def __init__(self, min_interval_s: float = 0.05, max_interval_s: float = 120.0) -> None:
        """Make one.

        Args:
            min_interval_s: readings closer than this give no rate of their own: the division
                would magnify the jitter of the read; the last rate stands.
            max_interval_s: readings further apart give none: a mean over a gap is not the rate
                now.
        """
        self._min_s = min_interval_s
        self._max_s = max_interval_s
        self._last: dict[Hashable, tuple[float, float]] = {}
        self._rate: dict[Hashable, float] = {}

    def update(self, key: Hashable, total: float, at_s: float) -> float | None:
        """Return the mean rate since the reading before; None on the first.

        Args:
            key: which counter.
            total: its value now.
            at_s: time of the reading, monotonic clock.
        """
        last = self._last.get(key)
        if last is not None and at_s - last[1] < self._min_s:
            return self._rate.get(key)
        self._last[key] = (total, at_s)
        if last is None or at_s - last[1] > self._max_s:
            self._rate.pop(key, None)
            return None
        self._rate[key] = (total - last[0]) / (at_s - last[1])
        return self._rate[key]

    def forget(self, keep: set[Hashable]) -> None:
        """Drop the keys that are not in ``keep``."""
        for key in self._last.keys() - keep:
            del self._last[key]
            self._rate.pop(key, None)
