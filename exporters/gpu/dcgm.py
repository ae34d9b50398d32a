"""GPUs as DCGM sees them: through a host engine, or one embedded in this process."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from vramscope.exporters.errors import SourceUnavailableError
from vramscope.exporters.gpu.dcgm_bindings import Bindings, load_bindings
from vramscope.exporters.gpu.dcgm_engine import GPU, Engine, Key, Values, said
from vramscope.exporters.gpu.dcgm_entities import (
    Entity,
    enumerate_gpus,
    find_gpus,
    find_links,
    link_states,
)
from vramscope.exporters.gpu.dcgm_fields import (
    LINK_FILLS,
    LINK_RATES,
    SUCCESSORS,
    WATCHED,
    XID,
    Quantity,
    per_link_ids,
)
from vramscope.exporters.gpu.dcgm_values import Missing, gpu_sample, link_sample
from vramscope.exporters.gpu.dcgm_watches import Watches
from vramscope.exporters.signals.gpu import GpuReading, GpuSample, LinkSample

__all__ = ["DcgmSource"]

log = logging.getLogger(__name__)

LIBRARY_NOT_FOUND = -25

RETRY_GPU_S = 60.0
"""How often a GPU that could not be identified is tried again."""

ORIGINALS = {successor.field_id: original for original, successor in SUCCESSORS.items()}


@dataclass(slots=True)
class _Session:
    """What one connection found and watches."""

    engine: Engine
    watches: Watches
    keys: tuple[Key, ...]
    entities: list[Entity]
    errors: dict[str, str]
    began_s: float
    links: list[Entity]
    fields: Sequence[int] = ()
    link_fields: Sequence[int] = ()
    reads: int = 0

    def close(self) -> None:
        self.watches.close()
        self.engine.close()


class DcgmSource:
    """Reads GPUs, MIG instances and NVLinks from DCGM. One thread at a time.

    A host engine that goes away fails the read; each later read tries to connect, with groups
    and watches made anew. So does a GPU or MIG instance that comes or goes, without a failure.

    Args:
        address: empty: an engine embedded in this process; else ``host:port`` of a host engine,
            or ``unix:///path`` of its socket.
        period_s: how often DCGM reads the driver.
        bindings: None takes the host's pydcgm.
        extra_fields: ids to read for ``GpuSample.dcgm_fields`` beyond what samples hold.
        per_link: read each NVLink's traffic and errors, not its state alone.
        clock: monotonic, seconds.

    Raises:
        SourceUnavailableError: no bindings, no library, no host engine that answers, or no GPU.
    """

    name = "dcgm"

    def __init__(
        self,
        address: str = "",
        period_s: float = 1.0,
        bindings: Bindings | None = None,
        extra_fields: Iterable[int] = (),
        per_link: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bindings = bindings or load_bindings()
        self._address = address
        self._period_s = period_s
        self._per_link = per_link
        extra = (ORIGINALS.get(i, i) for i in extra_fields)
        links = [i for i, _, _ in per_link_ids()] if per_link else []
        self._wanted = [*dict.fromkeys((*WATCHED, *extra, *links))]
        self._wanted = [i for i in self._wanted if i != XID]
        self._clock = clock
        self._session: _Session | None = None
        self._xids: dict[tuple[str, int], int] = {}
        self._xid_us: dict[Key, int] = {}
        self._last_xid: dict[Key, int] = {}
        self._connect(count_xids=False)

    @property
    def where(self) -> str:
        """Which engine, for people."""
        return f"host engine {self._address}" if self._address else "embedded"

    @property
    def version(self) -> tuple[int, ...]:
        """Of the host engine; empty when it does not say or is away."""
        return self._session.engine.version() if self._session else ()

    def close(self) -> None:
        """Disconnect; the next read connects again."""
        if self._session is not None:
            self._session.close()
        self._session = None

    def read(self) -> GpuReading:
        """Return what there is now.

        Raises:
            SourceUnavailableError: the host engine or the last GPU is gone.
        """
        try:
            session = self._session
            if session is not None and self._outdated(session):
                self.close()
            session = self._session or self._connect(count_xids=True)
            return self._read(session)
        except self._bindings.error as error:
            self.close()
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> SourceUnavailableError:
        hint = "start nv-hostengine there" if self._address else "is the NVIDIA driver loaded?"
        if getattr(error, "value", 0) == LIBRARY_NOT_FOUND:
            hint = "install NVIDIA's package datacenter-gpu-manager-4-core"
        return SourceUnavailableError(f"DCGM ({self.where}): {said(error)}: {hint}")

    def _connect(self, *, count_xids: bool) -> _Session:
        engine: Engine | None = None
        watches: Watches | None = None
        try:
            engine = Engine(self._bindings, self._address)
            watches = Watches(engine, self._period_s)
            keys = self._find_any(engine)
            entities, errors = find_gpus(engine, keys)
            links = find_links(engine, entities) if self._per_link else []
            session = _Session(engine, watches, keys, entities, errors, self._clock(), links)
            session.fields = watches.watch(entities, self._wanted)
            session.link_fields = watches.watch_links(links, [*LINK_FILLS])
            watches.watch_xids(entities)
            engine.update()
            self._session = session
            self._take_xids(session, count=count_xids)
        except (self._bindings.error, SourceUnavailableError) as error:
            if watches is not None:
                watches.close()
            if engine is not None:
                engine.close()
            self._session = None
            if isinstance(error, SourceUnavailableError):
                raise
            raise self._unavailable(error) from error
        self._report(session)
        return session

    def _find_any(self, engine: Engine) -> tuple[Key, ...]:
        keys = enumerate_gpus(engine)
        if not keys:
            raise SourceUnavailableError(f"DCGM ({self.where}): no GPU that DCGM supports")
        return keys

    def _report(self, session: _Session) -> None:
        version = ".".join(map(str, session.engine.version())) or "of unknown version"
        log.info(
            "dcgm: %s: DCGM %s, %d GPUs and MIG instances, %d fields",
            self.where,
            version,
            len(session.entities),
            len(session.fields),
        )
        reasons: dict[str, list[int]] = {}
        for i, why in sorted(session.watches.dropped.items()):
            if i not in ORIGINALS:
                reasons.setdefault(why, []).append(i)
        for why, ids in reasons.items():
            log.info("dcgm: left out: %s: fields %s", why, ", ".join(map(str, ids)))

    def _outdated(self, session: _Session) -> bool:
        if session.errors and self._clock() - session.began_s >= RETRY_GPU_S:
            return True
        return enumerate_gpus(session.engine) != session.keys

    def _read(self, session: _Session) -> GpuReading:
        keys = [entity.key for entity in session.entities]
        values, failed = session.engine.latest_apart(keys, session.fields)
        links = self._read_links(session, values)
        self._take_xids(session, count=True)
        now_s = self._clock()
        samples: list[GpuSample] = []
        errors = dict(session.errors)
        for entity in session.entities:
            found = values.get(entity.key, {})
            reason = failed.get(entity.key) or _why_unreadable(found)
            if reason:
                errors[entity.gpu.uuid] = reason
                continue
            known = self._in_original_units(entity, found, first=session.reads == 0)
            known[XID] = self._last_xid.get(entity.key, 0)
            mine = links.get(entity.key[1], ()) if entity.key[0] == GPU else ()
            samples.append(gpu_sample(entity.gpu, now_s, known, mine))
        session.reads += 1
        return GpuReading(tuple(samples), errors, dict(self._xids))

    def _in_original_units(
        self, entity: Entity, found: Values, *, first: bool
    ) -> dict[int, float | str]:
        known = dict(entity.constants)
        for i, value in found.items():
            if isinstance(value, Missing) or (first and i in LINK_RATES and value == 0):
                continue
            original = ORIGINALS.get(i)
            if original is None or isinstance(value, str):
                known[i] = value
            else:
                successor = SUCCESSORS[original]
                known[original] = value * successor.times / successor.over
        return known

    def _read_links(
        self, session: _Session, values: Mapping[Key, Values]
    ) -> dict[int, tuple[LinkSample, ...]]:
        """Return the NVLinks that are there, by DCGM's id of the GPU."""
        states = link_states(session.engine)
        fills: dict[tuple[int, int], list[tuple[Quantity, float | str]]] = {}
        entities = [link.key for link in session.links]
        of_links, _ = session.engine.latest_apart(entities, session.link_fields)
        for entity in session.links:
            for i, value in of_links.get(entity.key, {}).items():
                if entity.link is not None and not isinstance(value, Missing):
                    fills.setdefault((entity.key[1] >> 24, entity.link), []).append(
                        (LINK_FILLS[i], value)
                    )
        if self._per_link:
            for (group, gpu), found in values.items():
                for i, link, quantity in per_link_ids():
                    value = found.get(i, Missing.NOT_WATCHED)
                    if group == GPU and not isinstance(value, Missing):
                        fills.setdefault((gpu, link), []).append((quantity, value))
        gpus = {key[1] for key in values if key[0] == GPU}
        return {
            gpu: tuple(
                link_sample(link, states.get(gpu, {}).get(link), fills.get((gpu, link), ()))
                for link in sorted({*states.get(gpu, {}), *(n for g, n in fills if g == gpu)})
                if link in states.get(gpu, {}) or not states
            )
            for gpu in gpus
        }

    def _take_xids(self, session: _Session, *, count: bool) -> None:
        """Count the XIDs that are newer than the newest seen of their entity."""
        whole = {entity.key: entity.whole_uuid for entity in session.entities}
        seen_us = dict(self._xid_us)
        for key, xid, at_us in session.watches.read_xids():
            if key not in whole or at_us <= seen_us.get(key, 0):
                continue
            if at_us > self._xid_us.get(key, 0):
                self._xid_us[key] = at_us
                self._last_xid[key] = xid
            if count:
                which = whole[key], xid
                self._xids[which] = self._xids.get(which, 0) + 1


def _why_unreadable(values: Values) -> str:
    """Return why a GPU can't be read, empty when it can."""
    reasons = [value for value in values.values() if isinstance(value, Missing)]
    if Missing.GPU_LOST in reasons:
        return f"{Missing.GPU_LOST}: it fell off the bus or wants a reset"
    if len(reasons) == len(values):
        most = max(set(reasons), key=reasons.count) if reasons else Missing.NOT_WATCHED
        return f"no field can be read: {most}"
    return ""
