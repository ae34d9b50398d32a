"""How long evicted blocks had not been used: whether the cache loses what is still wanted."""

from collections import Counter
from collections.abc import Iterable

from vramscope.exporters.engine.probe.histogram import Histogram

__all__ = ["AGE_BOUNDS_S", "EvictedAges"]

AGE_BOUNDS_S = (1, 5, 30, 120, 600, 3600)


class EvictedAges:
    """Ages at eviction, of blocks that had a hit since they were filled and of those that had none.

    Age is the time since the block's last reference was given back. An eviction is dated by the
    scan after it.
    """

    def __init__(self) -> None:
        self._hit = Histogram("evicted_hit_age_s", AGE_BOUNDS_S)
        self._never_hit = Histogram("evicted_never_hit_age_s", AGE_BOUNDS_S)
        self.fields = (*self._hit.fields, *self._never_hit.fields)

    def add(self, evicted_since_s: Iterable[float], now_s: float) -> None:
        """Add evicted blocks, as ``PoolTracker.take_evicted`` returns them."""
        for since_s, blocks in Counter(evicted_since_s).items():  # mostly freed together
            ages = self._never_hit if since_s > 0 else self._hit
            ages.observe(max(0.0, now_s - abs(since_s)), blocks)

    def values(self) -> list[float]:
        """Return the values of ``fields``."""
        return [*self._hit.values(), *self._never_hit.values()]
