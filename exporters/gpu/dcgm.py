"""GPUs as DCGM sees them: through a host engine, or one embedded in this process."""

import logging
import time
from collections.abc import Callable, Iterable

from vramscope.exporters.errors import SourceUnavailableError
from vramscope.exporters.gpu.dcgm_bindings import Bindings, load_bindings
from vramscope.exporters.gpu.dcgm_engine import GPU, Values, said
from vramscope.exporters.gpu.dcgm_fields import WATCHED, XID, per_link_ids
from vramscope.exporters.gpu.dcgm_session import ORIGINALS, Session
from vramscope.exporters.gpu.dcgm_values import Missing, gpu_sample
from vramscope.exporters.gpu.dcgm_xids import XidCounter
from vramscope.exporters.signals.gpu import GpuReading, GpuSample

__all__ = ["DcgmSource"]

log = logging.getLogger(__name__)

LIBRARY_NOT_FOUND = -25


class DcgmSource:
    """Reads GPUs, MIG instances and NVLinks from DCGM. One thread at a time.

    A host engine that goes away fails the read; each later read tries to connect, with groups
    and watches made anew. So does a GPU or MIG instance that comes or goes, without a failure.

    Args:
        address: empty: an engine embedded in this process; else ``host:port`` of a host engine,
            or ``unix:///path`` of its socket.
        period_s: how often DCGM reads the driver; profiling fields at most ten times a second.
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
        self._clock = clock
        extra = [ORIGINALS.get(i, i) for i in extra_fields]
        links = [i for i, _, _ in per_link_ids()] if per_link else []
        self._wanted = [i for i in dict.fromkeys((*WATCHED, *extra, *links)) if i != XID]
        self._xids = XidCounter()
        self._session: Session | None = None
        try:
            self._take_xids(self._connect(), count=False)
        except self._bindings.error as error:
            raise self._away(error) from error

    @property
    def version(self) -> tuple[int, ...]:
        """As DCGM tells it; empty when it does not say or is away."""
        return self._session.version if self._session else ()

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
            if self._session is not None and self._session.outdated():
                self.close()
            return self._read(self._session or self._connect())
        except self._bindings.error as error:
            raise self._away(error) from error

    def _connect(self) -> Session:
        session = self._session = Session(
            self._bindings,
            self._address,
            self._period_s,
            self._wanted,
            per_link=self._per_link,
            clock=self._clock,
        )
        for line in session.describe():
            log.info("dcgm (%s): %s", self._where, line)
        return session

    def _read(self, session: Session) -> GpuReading:
        values, failed = session.read()
        links = session.links(values)
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
            known = {i: value for i, value in found.items() if not isinstance(value, Missing)}
            known = {**entity.constants, XID: self._xids.last.get(entity.key, 0), **known}
            group, i = entity.key
            own_links = links.get(i, ()) if group == GPU else ()
            samples.append(gpu_sample(entity.gpu, now_s, known, own_links))
        indexes = {entity.gpu.uuid: entity.gpu.index for entity in session.entities}
        return GpuReading(tuple(samples), errors, dict(self._xids.counts), indexes)

    def _take_xids(self, session: Session, *, count: bool) -> None:
        uuids = {entity.key: entity.whole_uuid for entity in session.entities}
        self._xids.take(session.xids(), uuids, count=count)

    @property
    def _where(self) -> str:
        return f"host engine {self._address}" if self._address else "embedded"

    def _away(self, error: Exception) -> SourceUnavailableError:
        self.close()
        hint = "start nv-hostengine there" if self._address else "is the NVIDIA driver loaded?"
        if getattr(error, "value", 0) == LIBRARY_NOT_FOUND:
            hint = "install NVIDIA's package datacenter-gpu-manager-4-core"
        return SourceUnavailableError(f"DCGM ({self._where}): {said(error)}: {hint}")


def _why_unreadable(values: Values) -> str:
    """Return why a GPU can't be read, empty when it can."""
    reasons = [value for value in values.values() if isinstance(value, Missing)]
    if Missing.GPU_LOST in reasons:
        return f"{Missing.GPU_LOST}: it fell off the bus or wants a reset"
    if len(reasons) == len(values):
        most = max(set(reasons), key=reasons.count) if reasons else Missing.NOT_WATCHED
        return f"no field can be read: {most}"
    return ""
