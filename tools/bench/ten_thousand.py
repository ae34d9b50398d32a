"""Ten thousand series, shaped as the exporter's: 100 families of 100, with seven labels."""

import random

from vramscope.exporters.catalog import Metric
from vramscope.exporters.exposition.families import Families

__all__ = ["fill"]

LABELS = ("gpu", "uuid", "hostname", "pod", "namespace", "container", "kind")
METRICS = tuple(
    Metric(f"vramscope_bench{n}_bytes", "gauge", "bytes", f"Number {n} of the bench.", LABELS)
    for n in range(100)
)
SERIES = tuple(
    (str(n % 8), f"GPU-8f6c2a1e-{n:04d}", "node-17.cluster", f"vllm-{n}", "llm", "vllm", f"k{n}")
    for n in range(100)
)


def fill(families: Families, chance: random.Random, *, still: float = 0.0) -> None:
    """Add ten thousand samples: bytes, ratios, small counts and totals, a quarter each.

    Args:
        families: where to.
        chance: makes the values.
        still: share of the families that hold the same values at each call.
    """
    for n, metric in enumerate(METRICS):
        values = random.Random(n) if n < still * len(METRICS) else chance  # noqa: S311
        for at, labels in enumerate(SERIES):
            families.add(metric, _value(at % 4, values), *labels)


def _value(kind: int, chance: random.Random) -> float:
    if kind == 0:
        return float(chance.randrange(2**36))
    if kind == 1:
        return chance.random()
    return float(chance.randrange(100 if kind == 2 else 10**6))
