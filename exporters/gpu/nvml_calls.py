"""Calls of NVML that tolerate what a GPU, a driver or a user's rights don't give."""

from collections.abc import Callable
from typing import Any

import pynvml  # type: ignore[import-untyped]  # one module, without types

from vramscope.exporters.errors import SourceUnavailableError, VramscopeError

__all__ = ["GONE", "NvmlCalls", "UnreadableGpuError", "bus_id", "raise_if_lost", "unavailable"]

RETRY_REFUSED_S = 300.0
"""A driver upgrade, a MIG change or new rights can make a refused call work."""

REFUSED = {
    pynvml.NVML_ERROR_INVALID_ARGUMENT,
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_NO_PERMISSION,
    pynvml.NVML_ERROR_NOT_FOUND,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
}
"""This GPU, driver or user does not have it: not worth asking at each refresh."""
LOST = {pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED}
"""Nothing more can be read from this GPU."""
ADVICE = {
    pynvml.NVML_ERROR_UNINITIALIZED: "the library was shut down: the next read opens it again",
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "load NVIDIA's driver (modprobe nvidia; dmesg says why "
    "it does not)",
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "no libnvidia-ml.so.1: install NVIDIA's driver, or run "
    "the container with the NVIDIA runtime (driver capability utility)",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "the driver was upgraded under its library: "
    "reload the driver or restart the host",
    pynvml.NVML_ERROR_NO_PERMISSION: "let this user open /dev/nvidiactl and /dev/nvidia*",
}
"""What to do when the library as a whole does not work."""
GONE = ADVICE.keys() - {pynvml.NVML_ERROR_NO_PERMISSION}
"""These mean the whole library, whichever call returned them."""


class UnreadableGpuError(VramscopeError):
    """One GPU can't be read; the others can."""


def unavailable(error: pynvml.NVMLError) -> SourceUnavailableError:
    """Return the error that says what is wrong with NVML as a whole and what to do."""
    advice = ADVICE.get(error.value)
    return SourceUnavailableError(f"nvml: {error}" + (f": {advice}" if advice else ""))


class NvmlCalls:
    """Calls for one GPU; remembers for five minutes which of them it refuses."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._refused_until_s: dict[str, float] = {}

    def ask(self, name: str, *args: Any, key: str = "", remember: bool = True) -> Any:
        """Call a function of NVML.

        Args:
            name: of the function in ``pynvml``, which may be older than the function.
            args: its arguments.
            key: what a refusal is remembered for; the name when empty.
            remember: whether a refusal is remembered.

        Returns:
            what it returns, or None when there is no answer.

        Raises:
            UnreadableGpuError: the GPU is lost.
            SourceUnavailableError: the library or the driver is gone.
        """
        key = key or name
        until_s = self._refused_until_s.get(key)
        if until_s is not None:
            if self._clock() < until_s:
                return None
            del self._refused_until_s[key]
        function = getattr(pynvml, name, None)
        if function is None:
            self.refuse(key)
            return None
        try:
            return function(*args)
        except pynvml.NVMLError as error:
            raise_if_lost(error.value)
            if remember and error.value in REFUSED:
                self.refuse(key)
            return None

    def need(self, name: str, *args: Any) -> Any:
        """Call a function without whose answer the GPU is not worth showing.

        Raises:
            UnreadableGpuError: it gave no answer.
            SourceUnavailableError: the library or the driver is gone.
        """
        try:
            return getattr(pynvml, name)(*args)
        except pynvml.NVMLError as error:
            raise_if_lost(error.value)
            raise UnreadableGpuError(f"{name}: {error}") from error

    def refuse(self, key: str) -> None:
        """Remember that there is no use in asking."""
        self._refused_until_s[key] = self._clock() + RETRY_REFUSED_S


def raise_if_lost(code: int) -> None:
    """Raise when a return code means that the GPU, or all of NVML, is gone.

    Raises:
        UnreadableGpuError: the GPU is lost.
        SourceUnavailableError: the library or the driver is gone.
    """
    if code in LOST:
        raise UnreadableGpuError(str(pynvml.NVMLError(code)))
    if code in GONE:
        raise unavailable(pynvml.NVMLError(code))


def bus_id(pci: Any) -> str:
    """Return a PCI info's bus id, ``00000000:1B:00.0``; empty for None."""
    if pci is None:
        return ""
    # bytes or text, by the version of pynvml
    return pci.busId.decode() if isinstance(pci.busId, bytes) else str(pci.busId)
