"""What a host engine is asked to watch: as much of what is wanted as it knows and may give."""

import os
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

from vramscope.exporters.gpu.dcgm_engine import GPU, MAX_FIELDS, Engine, Key, said
from vramscope.exporters.gpu.dcgm_entities import Entity
from vramscope.exporters.gpu.dcgm_fields import PROFILING, SUCCESSORS, UNLISTED_PROFILING, XID

__all__ = ["Watches"]

KEEP_SAMPLES = 2
KEEP_AGE_S = 60.0
XID_SAMPLES = 1000
XID_AGE_S = 3600.0
PROFILING_PERIOD_S = 0.1
"""Profiling counters read more often than this are wrong on Hopper."""


class Watches:
    """Groups and watches of one connection.

    Fields that the host engine does not know, or may not give, are left out one by one, and
    ``dropped`` says why; where an original id is unknown, DCGM 4.7's id of the same quantity
    is watched in its place. Which profiling fields a GPU has is asked of each GPU.

    Args:
        engine: connected.
        period_s: how often fields are read; profiling fields at most ten times a second.
    """

    def __init__(self, engine: Engine, period_s: float) -> None:
        self.dropped: dict[int, str] = {}
        self._engine = engine
        self._period_s = period_s
        self._groups: list[Any] = []
        self._field_groups: list[Any] = []
        self._xids: tuple[Any, Any] | None = None
        self._xid_values: Any = None

    def close(self) -> None:
        """Take the groups down, and with them the watches."""
        for made in (*self._field_groups, *self._groups):
            self._engine.quietly(made.Delete)
        self._field_groups, self._groups = [], []

    def watch(self, entities: Sequence[Entity], wanted: Sequence[int]) -> list[int]:
        """Watch fields of GPUs and MIG instances; return the ids to read."""
        keys = [entity.key for entity in entities]
        plain = [i for i in wanted if i not in PROFILING]
        got = self._watch(keys, plain, self._period_s)
        stand_ins = [SUCCESSORS[i].field_id for i in plain if i not in got and i in SUCCESSORS]
        got |= self._watch(keys, stand_ins, self._period_s)
        profiling = [i for i in wanted if i in PROFILING]
        for uuids, ids in self._profiling(entities, profiling):
            alike = [entity.key for entity in entities if entity.whole_uuid in uuids]
            got |= self._watch(alike, ids, max(self._period_s, PROFILING_PERIOD_S))
        return sorted(got)

    def watch_links(self, links: Sequence[Entity], wanted: Sequence[int]) -> list[int]:
        """Watch fields of NVLinks, the profiling ones among them; return the ids to read."""
        period_s = max(self._period_s, PROFILING_PERIOD_S)
        return sorted(self._watch([link.key for link in links], wanted, period_s))

    def watch_xids(self, entities: Sequence[Entity]) -> None:
        """Watch XIDs apart: each of them is a sample, and all are kept until read."""
        try:
            group = self._group([entity.key for entity in entities])
            fields = self._field_group([XID])
            group.samples.WatchFields(fields, _us(self._period_s), XID_AGE_S, XID_SAMPLES)
        except self._engine.bindings.error as error:
            if self._engine.gone(error):
                raise
            self.dropped[XID] = said(error)
        else:
            self._xids = group, fields

    def read_xids(self) -> Iterator[tuple[Key, int, int]]:
        """Yield (entity, XID, time in microseconds) of those not given yet.

        The last one is given again when there is no newer: tell them by their time.
        """
        if self._xids is None:
            return
        group, fields = self._xids
        self._xid_values = group.samples.GetAllSinceLastCall_v2(self._xid_values, fields)
        for kind, entities in self._xid_values.values.items():
            for i, series in entities.items():
                for sample in series.get(XID, ()):
                    if not sample.isBlank and sample.value:
                        yield (kind, i), int(sample.value), int(sample.ts)
        self._xid_values.EmptyValues()  # it keeps all that it ever saw

    def _profiling(
        self, entities: Sequence[Entity], wanted: Sequence[int]
    ) -> list[tuple[set[str], tuple[int, ...]]]:
        """Return which GPUs, by uuid, have which of the wanted profiling fields."""
        alike: dict[tuple[int, ...], set[str]] = {}
        for entity in entities:
            if entity.key[0] != GPU or not wanted:
                continue
            try:
                found = self._engine.bindings.agent.dcgmProfGetSupportedMetricGroups(
                    self._engine.id, entity.key[1]
                )
            except self._engine.bindings.error as error:
                if self._engine.gone(error):
                    raise
                for i in wanted:
                    self.dropped[i] = f"GPU {entity.gpu.index}: {said(error)}"
                continue
            listed = {
                int(i)
                for group in found.metricGroups[: found.numMetricGroups]
                for i in group.fieldIds[: group.numFieldIds]
            }
            ids = tuple(i for i in wanted if i in listed | UNLISTED_PROFILING)
            alike.setdefault(ids, set()).add(entity.gpu.uuid)
        return [(uuids, ids) for ids, uuids in alike.items()]

    def _watch(self, keys: Sequence[Key], ids: Sequence[int], period_s: float) -> set[int]:
        if not keys or not ids:
            return set()
        group = self._group(keys)
        watched: set[int] = set()
        for first in range(0, len(ids), MAX_FIELDS):
            watched |= self._watch_known(group, ids[first : first + MAX_FIELDS], period_s)
        return watched

    def _watch_known(self, group: Any, ids: Sequence[int], period_s: float) -> set[int]:
        """Watch what can be: one id that can't fails all of its field group, so it is halved."""
        try:
            fields = self._field_group(ids)
            group.samples.WatchFields(fields, _us(period_s), KEEP_AGE_S, KEEP_SAMPLES)
        except self._engine.bindings.error as error:
            if self._engine.gone(error):
                raise
            if len(ids) == 1:
                self.dropped[ids[0]] = said(error)
                return set()
            half = len(ids) // 2
            first = self._watch_known(group, ids[:half], period_s)
            return first | self._watch_known(group, ids[half:], period_s)
        return set(ids)

    def _group(self, keys: Sequence[Key]) -> Any:
        group = self._engine.bindings.pydcgm.DcgmGroup(self._engine.handle, groupName=_name())
        self._groups.append(group)
        for kind, i in keys:
            group.AddEntity(kind, i)
        return group

    def _field_group(self, ids: Sequence[int]) -> Any:
        fields = self._engine.bindings.pydcgm.DcgmFieldGroup(self._engine.handle, _name(), [*ids])
        self._field_groups.append(fields)
        return fields


def _name() -> str:
    """Return a name that no other client of the host engine uses."""
    return f"vramscope_{os.getpid()}_{secrets.token_hex(6)}"


def _us(seconds: float) -> int:
    return round(seconds * 1_000_000)
