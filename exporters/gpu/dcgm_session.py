"""One connection with what it found and watches; after a failure, a new one is made."""

import logging
from collections.abc import Callable, Sequence

from vramscope.exporters.errors import SourceUnavailableError
from vramscope.exporters.gpu.dcgm_bindings import Bindings
from vramscope.exporters.gpu.dcgm_engine import Engine, Key, Values
from vramscope.exporters.gpu.dcgm_entities import enumerate_gpus, find_gpus, find_links
from vramscope.exporters.gpu.dcgm_fields import LINK_FILLS, LINK_RATES, SUCCESSORS
from vramscope.exporters.gpu.dcgm_links import read_links
from vramscope.exporters.gpu.dcgm_values import Missing
from vramscope.exporters.gpu.dcgm_watches import Watches
from vramscope.exporters.signals.gpu import LinkSample

__all__ = ["ORIGINALS", "Session"]

log = logging.getLogger(__name__)

RETRY_GPU_S = 60.0
"""How often a GPU that could not be identified is tried again."""

ORIGINALS = {successor.field_id: original for original, successor in SUCCESSORS.items()}


class Session:
    """Connects, finds GPUs, MIG instances and links, and watches them.

    Args:
        bindings: of the installed DCGM.
        address: empty: embedded; else ``host:port`` or ``unix:///path``.
        period_s: how often DCGM reads the driver.
        wanted: field ids of GPUs and MIG instances.
        per_link: whether to watch links as entities too.
        clock: monotonic, seconds.

    Attributes:
        entities: GPUs and MIG instances.
        errors: why a GPU could not be identified, by DCGM's id of it.

    Raises:
        SourceUnavailableError: there is no GPU.
        Exception: here and in each method, the bindings' own.
    """

    def __init__(
        self,
        bindings: Bindings,
        address: str,
        period_s: float,
        wanted: Sequence[int],
        *,
        per_link: bool,
        clock: Callable[[], float],
    ) -> None:
        self._clock = clock
        self._engine = Engine(bindings, address)
        self._watches = Watches(self._engine, period_s)
        self._reads = 0
        try:
            self.version = self._engine.version()
            self._keys = _any(enumerate_gpus(self._engine))
            self.entities, self.errors = find_gpus(self._engine, self._keys)
            self._tried_s = clock()
            self._fields = self._watches.watch(self.entities, wanted)
            self._links = find_links(self._engine, self.entities) if per_link else []
            self._link_fields = self._watches.watch_links(self._links, [*LINK_FILLS])
            self._watches.watch_xids(self.entities)
            self._engine.update()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Take watches and groups down and disconnect; never raises."""
        self._watches.close()
        self._engine.close()

    def describe(self) -> list[str]:
        """Return lines for people: what is read, what is left out and why."""
        version = ".".join(map(str, self.version)) or "of unknown version"
        gpus, fields = len(self.entities), len(self._fields)
        lines = [f"DCGM {version}: {gpus} GPUs and MIG instances, {fields} fields"]
        reasons: dict[str, list[str]] = {}
        for i, why in sorted(self._watches.dropped.items()):
            if i not in ORIGINALS:  # that one was a try, for one that is named
                reasons.setdefault(why, []).append(str(i))
        return lines + [f"left out: {why}: fields {', '.join(i)}" for why, i in reasons.items()]

    def outdated(self) -> bool:
        """Whether GPUs or MIG instances came or went, or a GPU that failed answers now."""
        if enumerate_gpus(self._engine) != self._keys:
            return True
        if not self.errors or self._clock() - self._tried_s < RETRY_GPU_S:
            return False
        self._tried_s = self._clock()
        return find_gpus(self._engine, self._keys)[1].keys() != self.errors.keys()

    def read(self) -> tuple[dict[Key, Values], dict[Key, str]]:
        """Return the latest values, and why entities failed that could not be read.

        Under the original ids and in their units, whichever id the host engine knows.
        """
        keys = [entity.key for entity in self.entities]
        values, failed = self._engine.latest_apart(keys, self._fields)
        first, self._reads = self._reads == 0, self._reads + 1
        return {key: _original(found, first=first) for key, found in values.items()}, failed

    def links(self, values: dict[Key, Values]) -> dict[int, tuple[LinkSample, ...]]:
        """Return the NVLinks, by DCGM's id of the GPU; ``values`` are those of ``read``."""
        return read_links(self._engine, values, self._links, self._link_fields)

    def xids(self) -> list[tuple[Key, int, int]]:
        """Return new XID events, and now and then an old one: see ``Watches.read_xids``."""
        try:
            return [*self._watches.read_xids()]
        except self._engine.bindings.error as error:
            if self._engine.gone(error):
                raise
            log.debug("dcgm: no XIDs this time: %s", error)
            return []


def _any(keys: tuple[Key, ...]) -> tuple[Key, ...]:
    if not keys:
        raise SourceUnavailableError("DCGM: no GPU that it supports")
    return keys


def _original(found: Values, *, first: bool) -> Values:
    values: dict[int, float | str | Missing] = {}
    for i, value in found.items():
        original = ORIGINALS.get(i, i)
        if isinstance(value, Missing | str):
            values.setdefault(original, value)
        elif first and original in LINK_RATES and value == 0:
            values[original] = Missing.NO_DATA
        elif original != i:
            successor = SUCCESSORS[original]
            values[original] = value * successor.times / successor.over
        else:
            values[i] = value
    return values
