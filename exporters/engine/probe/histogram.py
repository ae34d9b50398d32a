"""A histogram of a record: fixed bounds, so that its fields are known before the first value."""

from bisect import bisect_left
from collections.abc import Sequence

__all__ = ["Histogram"]


class Histogram:
    """Counts observations by the first bound that is not below them.

    Args:
        name: of its fields: ``NAME_le_BOUND``, ``NAME_count``, ``NAME_sum``.
        bounds: upper bounds, ascending; what is over the last is in the count only.
    """

    def __init__(self, name: str, bounds: Sequence[float]) -> None:
        self.fields = (*(f"{name}_le_{bound}" for bound in bounds), f"{name}_count", f"{name}_sum")
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count an observation, or several alike."""
        self._counts[bisect_left(self._bounds, value)] += times
        self._sum += value * times

    def values(self) -> list[float]:
        """Return the values of ``fields``."""
        return [*self._counts[:-1], sum(self._counts), self._sum]
