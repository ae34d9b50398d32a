"""A histogram that a source keeps, as a frozen value."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["HistogramSample"]


@dataclass(frozen=True, slots=True)
class HistogramSample:
    """Observations since start.

    Attributes:
        counts: by upper bound, ascending; each observation is in the first bound not below it.
        total: all observations, those over the last bound included.
        summed: their sum.
    """

    counts: Mapping[float, int]
    total: int
    summed: float
