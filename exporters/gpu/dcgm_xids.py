"""XID events, counted one by one: DCGM's own value is a gauge of the last that never resets."""

from collections.abc import Iterable, Mapping

from vramscope.exporters.gpu.dcgm_engine import Key

__all__ = ["XidCounter"]


class XidCounter:
    """Counts each XID once, told by its time, however often DCGM gives it.

    Attributes:
        counts: events by (uuid of the GPU, XID), of MIG instances those of their GPU.
        last: the last XID by entity, counted or not.
    """

    def __init__(self) -> None:
        self.counts: dict[tuple[str, int], int] = {}
        self.last: dict[Key, int] = {}
        self._newest_us: dict[Key, int] = {}

    def take(
        self, events: Iterable[tuple[Key, int, int]], uuids: Mapping[Key, str], *, count: bool
    ) -> None:
        """Take events.

        Args:
            events: (entity, XID, time in microseconds), of an entity by their time.
            uuids: of the GPU that each entity is or is a part of.
            count: False for what was there before the source was opened.
        """
        known_us = dict(self._newest_us)
        for key, xid, at_us in events:
            if key not in uuids or at_us <= known_us.get(key, 0):
                continue
            self._newest_us[key] = max(at_us, self._newest_us.get(key, 0))
            self.last[key] = xid
            if count:
                which = uuids[key], xid
                self.counts[which] = self.counts.get(which, 0) + 1
