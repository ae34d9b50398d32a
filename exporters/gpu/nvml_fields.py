"""NVML's field values: many quantities of a GPU in one call."""

from collections.abc import Callable, Iterable
from typing import Any

import pynvml  # type: ignore[import-untyped]  # one module, without types

from vramscope.exporters.gpu.nvml_calls import RETRY_REFUSED_S, NvmlCalls, raise_if_lost

__all__ = ["ALL_LINKS", "Field", "FieldReader"]

Field = tuple[int, int]
"""Field id and scope: the number of a link, ``ALL_LINKS``, or 0 where it has no meaning."""

ALL_LINKS = 0xFFFFFFFF

MEMBERS = {
    pynvml.NVML_VALUE_TYPE_DOUBLE: "dVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
    4: "sllVal",  # signed long long; named in later pynvml only, like the next two
    5: "siVal",
    6: "usVal",
}
"""Member of the value's union, by its type."""

TOO_NARROW = {
    (field, pynvml.NVML_VALUE_TYPE_UNSIGNED_INT)
    for field in (197, 198)  # PCIe bytes: 32 bits wrap in 68 ms at generation 5 x 16
}
"""Answers that can't be followed from one refresh to the next."""


class FieldReader:
    """Reads a fixed set of fields; leaves out those that the GPU lacks, and retries them."""

    def __init__(
        self,
        calls: NvmlCalls,
        handle: Any,
        wanted: Iterable[Field],
        clock: Callable[[], float],
    ) -> None:
        self._calls = calls
        self._handle = handle
        self._wanted = list(wanted)
        self._clock = clock
        self._asked: list[Field] = []
        self._retry_at_s = clock()

    def read(self) -> dict[Field, float]:
        """Return the values there are, in NVML's units.

        Raises:
            UnreadableGpuError: the GPU is lost.
            SourceUnavailableError: the library or the driver is gone.
        """
        if self._clock() >= self._retry_at_s:
            self._asked = self._wanted
            self._retry_at_s = self._clock() + RETRY_REFUSED_S
        if not self._asked:
            return {}
        answers = self._calls.ask("nvmlDeviceGetFieldValues", self._handle, self._asked)
        if answers is None:
            return {}
        found: dict[Field, float] = {}
        refused = set()
        for field, answer in zip(self._asked, answers, strict=True):
            code = answer.nvmlReturn
            member = MEMBERS.get(answer.valueType)
            if code == 0 and member and (field[0], answer.valueType) not in TOO_NARROW:
                found[field] = getattr(answer.value, member)
            elif code in (pynvml.NVML_ERROR_TIMEOUT, pynvml.NVML_ERROR_UNKNOWN):
                continue  # this time only
            else:
                raise_if_lost(code)
                refused.add(field)
        if refused:
            self._asked = [field for field in self._asked if field not in refused]
        return found
