"""A connection to a host engine, or one embedded in this process, and reading values from it."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vramscope.exporters.gpu.dcgm_bindings import Bindings
from vramscope.exporters.gpu.dcgm_values import Missing, decode, text

__all__ = ["GPU", "GPU_INSTANCE", "LINK", "LIVE_DATA", "MAX_FIELDS", "Engine", "Key", "Values"]

log = logging.getLogger(__name__)

GPU, GPU_INSTANCE, LINK = 1, 4, 6
"""DCGM's entity groups that are read."""

LIVE_DATA = 1
"""Flag: ask the driver, not the cache: for what never changes and so is not watched."""

MAX_FIELDS = 100
"""In one call or field group: DCGM refuses more than 128."""

FUNCTION_NOT_FOUND = -20
GONE = frozenset((-10, -11, -21))
"""Codes that say the host engine does not answer: uninitialized, time-out, connection lost."""

Key = tuple[int, int]
"""Entity group and id."""
Values = Mapping[int, float | str | Missing]
"""By field id."""


class Engine:
    """Connected while it lives. One thread at a time.

    Args:
        bindings: of the installed DCGM.
        address: empty: embedded; else ``host:port`` or ``unix:///path``.

    Raises:
        Exception: here and in each method, the bindings' own.
    """

    def __init__(self, bindings: Bindings, address: str) -> None:
        self.bindings = bindings
        self.handle: Any = bindings.pydcgm.DcgmHandle(**_where(address))
        self.discovery: Any = self.handle.GetSystem().discovery

    @property
    def id(self) -> Any:
        """What the library's functions take for this connection."""
        return self.handle.handle

    def gone(self, error: Exception) -> bool:
        """Whether an exception of the bindings says that the host engine does not answer."""
        return getattr(error, "value", 0) in GONE

    def version(self) -> tuple[int, ...]:
        """Return the host engine's version, which may be newer or older than the library's."""
        agent = self.bindings.agent
        try:
            said = agent.dcgmHostengineVersionInfo(self.id).rawBuildInfoString
        except (AttributeError, self.bindings.error) as error:
            if self.gone(error):
                raise
            said = agent.dcgmVersionInfo().rawBuildInfoString
        found = re.search(r"version:(\d+)\.(\d+)(?:\.(\d+))?", text(said))
        return tuple(int(part) for part in found.groups() if part) if found else ()

    def update(self) -> None:
        """Have each watched field read once, and wait for it."""
        self.handle.GetSystem().UpdateAllFields(True)

    def latest(
        self, entities: Sequence[Key], ids: Sequence[int], flags: int = 0
    ) -> dict[Key, Values]:
        """Return the latest values of some fields of some entities."""
        # The raw structures: the bindings' own wrapper hides the status, takes bytes for text
        # (so that it misses blank texts), and raises inside the library's callback at a blob.
        pair = self.bindings.structs.c_dcgmGroupEntityPair_t
        found: dict[Key, dict[int, float | str | Missing]] = {key: {} for key in entities}
        for first in range(0, len(ids), MAX_FIELDS):
            for raw in self.bindings.agent.dcgmEntitiesGetLatestValues(
                self.id,
                [pair(group, i) for group, i in entities],
                [*ids[first : first + MAX_FIELDS]],
                flags,
            ):
                key = int(raw.entityGroupId), int(raw.entityId)
                if key in found:
                    found[key][int(raw.fieldId)] = decode(raw)
        return dict(found)

    def latest_apart(
        self, entities: Sequence[Key], ids: Sequence[int]
    ) -> tuple[dict[Key, Values], dict[Key, str]]:
        """Return the latest values, and why the entities failed that DCGM could not read.

        One of them fails DCGM's call for all; then each is asked by itself.
        """
        if not entities or not ids:
            return {}, {}
        try:
            return self.latest(entities, ids), {}
        except self.bindings.error as error:
            if self.gone(error):
                raise
        values: dict[Key, Values] = {}
        failed: dict[Key, str] = {}
        for key in entities:
            try:
                values |= self.latest([key], ids)
            except self.bindings.error as error:
                if self.gone(error):
                    raise
                failed[key] = said(error)
        return values, failed

    def quietly(self, call: Callable[[], object]) -> None:
        """Let go of something; a host engine that is gone has nothing left to let go of."""
        try:
            call()
        except self.bindings.error as error:
            log.debug("dcgm: while closing: %s", said(error))

    def close(self) -> None:
        """Disconnect, or stop the embedded engine."""
        self.quietly(self.handle.Shutdown)


def said(error: BaseException) -> str:
    """Return what an exception of the bindings says, which may be bytes, and its code."""
    code = getattr(error, "value", None)
    words = str(error)
    if words.startswith(("b'", 'b"')):
        words = words[2:-1]
    return f"{words} ({code})" if code is not None else words


def _where(address: str) -> dict[str, str]:
    if not address:
        return {}
    if address.startswith("unix://"):
        return {"unixSocketPath": address.removeprefix("unix://")}
    return {"ipAddress": address}
