"""What the catalog says of one metric."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Kind", "Metric"]

Kind = Literal["gauge", "counter", "histogram"]

PREFIX = "vramscope_"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name, type, unit, meaning and labels.

    Attributes:
        name: full name, ``vramscope_...``; a counter ends in ``_total``.
        kind: Prometheus type.
        unit: base unit (``seconds``, ``bytes``, ``ratio``) or what is counted (``blocks``).
        help: one sentence for ``# HELP``, ending in a full stop.
        labels: label names, in order.
        buckets: upper bounds of a histogram, in ``unit``.
        optional: names of labels that only some of its samples have, after ``labels``.
    """

    name: str
    kind: Kind
    unit: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    optional: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name.startswith(PREFIX):
            raise ValueError(f"metric {self.name}: want the prefix {PREFIX}")
        if (self.kind == "counter") != self.name.endswith("_total"):
            raise ValueError(f"metric {self.name}: a counter, and only a counter, ends in _total")
        if (self.kind == "histogram") != bool(self.buckets):
            raise ValueError(f"metric {self.name}: a histogram, and only a histogram, has buckets")
        if not self.help.endswith("."):
            raise ValueError(f"metric {self.name}: its help ends in a full stop")

    @property
    def label_names(self) -> tuple[str, ...]:
        """All label names a sample may have, in order."""
        return self.labels + self.optional
