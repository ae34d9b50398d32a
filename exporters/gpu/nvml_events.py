"""XID events by NVML: counted one by one, drained at each read, never waited for."""

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

import pynvml  # type: ignore[import-untyped]  # one module, without types

from vramscope.exporters.gpu.nvml_calls import NvmlCalls
from vramscope.exporters.gpu.xid import ANNOUNCED_XIDS

__all__ = ["XidEvents"]

MOST_EVENTS = 4096
"""Events drained in one read: a GPU that makes more of them does not hold up the others."""


class XidEvents:
    """Counts the XIDs of the GPUs it watches, from 0 when it is made.

    Where the driver gives no event set (some virtual GPUs) it counts nothing and shows nothing:
    absent is not zero.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._calls = NvmlCalls(clock)
        self._set: Any = None
        self._uuids: dict[int | None, str] = {}
        self._counts: dict[tuple[str, int], int] = {}

    @property
    def counts(self) -> Mapping[tuple[str, int], int]:
        """Events by (GPU uuid, XID); a few common ones are there at 0."""
        return dict(self._counts)

    def watch(self, handle: Any, uuid: str) -> None:
        """Count this GPU's events from now on."""
        if self._set is None:
            self._set = self._calls.ask("nvmlEventSetCreate")
        if self._set is None:
            return
        kinds = pynvml.nvmlEventTypeXidCriticalError
        try:
            pynvml.nvmlDeviceRegisterEvents(handle, kinds, self._set)
        except pynvml.NVMLError:
            return  # this GPU has no events; whether it can be read is for its reader to say
        self._uuids[_address(handle)] = uuid
        for xid in ANNOUNCED_XIDS:
            self._counts.setdefault((uuid, xid), 0)

    def drain(self) -> None:
        """Count what has happened since the last time."""
        if self._set is None:
            return
        for _ in range(MOST_EVENTS):
            try:
                event = pynvml.nvmlEventSetWait_v2(self._set, 0)
            except pynvml.NVMLError:
                return  # no more of them, or none to be had: a lost GPU is seen by its reader
            uuid = self._uuids.get(_address(event.device))
            if uuid is not None and event.eventType == pynvml.nvmlEventTypeXidCriticalError:
                key = (uuid, int(event.eventData))
                self._counts[key] = self._counts.get(key, 0) + 1

    def close(self) -> None:
        """Let go of the event set; the counts stay.

        Raises:
            SourceUnavailableError: the library is gone, and the set with it.
        """
        events, self._set, self._uuids = self._set, None, {}
        if events is not None:
            self._calls.ask("nvmlEventSetFree", events)


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value
