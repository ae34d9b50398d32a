"""What one subject adds to the probe."""

from collections.abc import Sequence
from typing import Protocol

__all__ = ["Part"]


class Part(Protocol):
    """One subject of a record: what it counts by its hooks, and what it says of it at a scan.

    A part is called by its process's probe only, under the probe's guard: what it raises
    switches the probe off.
    """

    @property
    def scan_fields(self) -> tuple[str, ...]:
        """Names of what ``scan`` returns, each beginning with the part's subject."""

    def capabilities(self) -> dict[str, bool]:
        """Return what this release lets the part see, by feature."""

    def scan(self, now_s: float) -> Sequence[float]:
        """Return the values of ``scan_fields`` at this moment.

        Args:
            now_s: the host's monotonic clock, seconds.
        """
