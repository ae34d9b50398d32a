"""When the usable blocks of a pool run out, if it goes on growing as it does now.

U, the blocks a new request may take, is followed as a random walk with a drift: it loses
``growth`` blocks a second on average, with a variance of ``variance`` blocks^2 a second. When
such a walk first meets 0 is inverse-Gaussian distributed, with the mean U / growth.

It looks ahead by what the last ten seconds were like and knows of no request's end. A pool whose
requests come and go wanders without running out, so the forecast errs to the early side
(docs/signals.md has figures).
"""

import math
from typing import NamedTuple

from vramscope.exporters.signals.kv_samples import GrowthSample

__all__ = ["HORIZON_S", "Exhaustion", "exhaustion"]

HORIZON_S = 600.0
"""Further ahead a look at the last ten seconds says nothing."""
LEAST_WEIGHT = 0.1
"""About the first second under load: until then there is no average."""


class Exhaustion(NamedTuple):
    """Seconds until U meets 0 at the current growth.

    Attributes:
        earliest: one in ten such walks is there before.
        median: half of them are.
        latest: nine in ten are; None when that is past the horizon.
    """

    earliest: float
    median: float
    latest: float | None


def exhaustion(usable: float, growth: GrowthSample) -> Exhaustion | None:
    """Forecast when a pool's usable blocks run out.

    Args:
        usable: U now, in blocks.
        growth: of the same pool.

    Returns:
        the forecast; None when the pool isn't growing, has just begun, or has over
        ``HORIZON_S`` left.

    Source:
        first passage time of Brownian motion with drift: Folks and Chhikara, The Inverse
        Gaussian Distribution and Its Statistical Application, J. R. Stat. Soc. B 40 (1978).

    >>> steady = GrowthSample(0, {}, 0, {}, 0.0, 5.0, 0.0, 1.0)
    >>> exhaustion(100, steady)
    Exhaustion(earliest=20.0, median=20.0, latest=20.0)
    """
    if growth.weight < LEAST_WEIGHT:
        return None
    if usable <= 0:
        return Exhaustion(0.0, 0.0, 0.0)
    drift = growth.growth_per_s / growth.weight
    variance = growth.variance / growth.weight
    if drift <= 0:
        return None
    if not variance:
        exact = usable / drift
        return Exhaustion(exact, exact, exact) if exact <= HORIZON_S else None
    median = _quantile(0.5, usable, drift, variance)
    earliest = _quantile(0.1, usable, drift, variance)
    if median is None or earliest is None:
        return None
    return Exhaustion(earliest, median, _quantile(0.9, usable, drift, variance))


def _quantile(share: float, usable: float, drift: float, variance: float) -> float | None:
    """Return when ``share`` of the walks are there, in seconds; None past the horizon."""
    if _arrived(HORIZON_S, usable, drift, variance) < share:
        return None
    low, high = 0.0, HORIZON_S
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        if _arrived(middle, usable, drift, variance) < share:
            low = middle
        else:
            high = middle
    return high


def _arrived(after_s: float, usable: float, drift: float, variance: float) -> float:
    """Return the share of walks that have met 0 after so many seconds."""
    if not after_s:
        return 0.0
    deviation = math.sqrt(variance * after_s)
    direct = _beyond((usable - drift * after_s) / deviation)
    distance = (usable + drift * after_s) / deviation
    exponent = 2 * drift * usable / variance
    tail = _beyond(distance)
    if tail:
        mirrored = math.exp(exponent + math.log(tail))
    else:  # too far out for a float: the tail's leading term
        mirrored = math.exp(exponent - distance**2 / 2) / (distance * math.sqrt(2 * math.pi))
    return direct + mirrored


def _beyond(deviations: float) -> float:
    """Return the share of a normal distribution beyond so many standard deviations."""
    return math.erfc(deviations / math.sqrt(2)) / 2
