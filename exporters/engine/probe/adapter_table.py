"""Counts by adapter for the few with the most traffic, and for all the others together."""

from typing import Any

__all__ = [
    "EVICTIONS",
    "LOADS",
    "LOAD_S",
    "OTHER",
    "REQUESTS",
    "ROW_FIELDS",
    "AdapterTable",
]

ROW_FIELDS = (
    "turn",
    *(f"requests_{tier}" for tier in ("gpu", "cpu", "disk")),
    *(f"loads_{tier}" for tier in ("cpu", "disk")),
    *(f"load_s_{tier}" for tier in ("cpu", "disk")),
    *(f"evictions_{tier}" for tier in ("gpu", "cpu")),
)
# Offsets into a row: the count of a tier is at offset + tier (GPU 1, CPU 2, DISK 3).
REQUESTS, LOADS, LOAD_S, EVICTIONS = 0, 2, 4, 7

OTHER = "other"
LONGEST_NAME = 200
REVIEW_PERIOD_S = 600.0
MOST_RIVALS = 1024
MORE_TIMES, MORE_REQUESTS = 2, 10


class AdapterTable:
    """One row of counters for each of a few adapters, and a last one for all others.

    Every count goes into exactly one row, so the rows sum to the totals, whoever has one:

    - An adapter gets a free row when it is first counted; its row starts at zero.
    - Every ten minutes, one without a row that had more than twice the requests of the one with
      the fewest, and ten more, takes its row. The loser's series ends and its later counts are
      with the others; the winner's starts at zero. So no counter ever goes down, names that are
      used once push nobody out, and at most all rows change hands in ten minutes.

    A row's ``turn`` is new whenever its owner is: a reader that finds another turn beside a
    name has caught the change in the middle.

    Args:
        most: rows beside the last.
        now_s: monotonic clock, seconds.

    Attributes:
        owners: name and turn of each row; None where it is free.
        rows: in the order of ``ROW_FIELDS``.
    """

    def __init__(self, most: int, now_s: float) -> None:
        self.owners: list[tuple[str, int] | None] = [None] * most
        self.rows = [[0.0] * len(ROW_FIELDS) for _ in range(most + 1)]
        self._place: dict[str, int] = {}
        self._turns = 0
        self._traffic: dict[str, int] = {}
        self._reviewed_s = now_s

    def row(self, name: str) -> list[float]:
        """Return the row to count ``name`` in."""
        place = self._place.get(name)
        if place is None:
            if len(self._place) == len(self.owners) or name == OTHER or len(name) > LONGEST_NAME:
                return self.rows[-1]
            place = len(self._place)
            self._give(place, name)
        return self.rows[place]

    def count_request(self, name: str, tier: int) -> None:
        """Count a request, which is traffic too."""
        self.row(name)[REQUESTS + tier] += 1
        if name in self._traffic or len(self._traffic) < MOST_RIVALS:
            self._traffic[name] = self._traffic.get(name, 0) + 1

    def review(self, now_s: float) -> bool:
        """Let busier adapters take the rows of quieter ones, if it is time.

        Returns:
            whether ``owners`` has changed.
        """
        if now_s - self._reviewed_s < REVIEW_PERIOD_S:
            return False
        self._reviewed_s = now_s
        traffic, self._traffic = self._traffic, {}
        owners = sorted(self._place, key=lambda name: traffic.get(name, 0))
        rivals = [
            name
            for name in sorted(traffic, key=lambda name: -traffic[name])
            if name not in self._place and name != OTHER and len(name) <= LONGEST_NAME
        ]
        changed = False
        for loser, winner in zip(owners, rivals, strict=False):
            if traffic[winner] <= MORE_TIMES * traffic.get(loser, 0) + MORE_REQUESTS:
                break
            self._give(self._place.pop(loser), winner)
            changed = True
        return changed

    def _give(self, place: int, name: str) -> None:
        self._turns += 1
        self._place[name] = place
        self.owners[place] = (name, self._turns)
        self.rows[place] = [float(self._turns), *[0.0] * (len(ROW_FIELDS) - 1)]

    def values(self) -> list[float]:
        """Return all rows, one after the other."""
        values: list[float] = []
        for row in self.rows:
            values += row
        return values

    def state(self) -> list[Any]:
        """Return ``owners`` in JSON's terms."""
        return [owner and list(owner) for owner in self.owners]
