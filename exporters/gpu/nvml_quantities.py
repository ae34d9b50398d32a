"""What a whole GPU and a MIG instance are both asked for."""

from typing import Any

import pynvml  # type: ignore[import-untyped]  # one module, without types

from vramscope.exporters.gpu.nvml_calls import NvmlCalls, UnreadableGpuError
from vramscope.exporters.signals.gpu import GpuProcess

__all__ = ["PCIE_RX_BYTES", "PCIE_TX_BYTES", "memory_bytes", "processes"]

PCIE_TX_BYTES, PCIE_RX_BYTES = 197, 198


def memory_bytes(calls: NvmlCalls, handle: Any) -> dict[str, float]:
    """Return memory by kind; used does not hold the reserved part where that is known.

    Raises:
        UnreadableGpuError: no version of the call gives an answer: nothing else would be worth
            showing.
    """
    info = calls.ask("nvmlDeviceGetMemoryInfo", handle, pynvml.nvmlMemory_v2, key="memory v2")
    kinds = ["total", "used", "free", "reserved"]
    if info is None:  # drivers before 510: used holds the reserved part
        kinds.remove("reserved")
        try:
            info = calls.need("nvmlDeviceGetMemoryInfo", handle)
        except UnreadableGpuError as error:
            if "Not Supported" not in str(error):
                raise
            return {}  # a GPU whose memory is the host's
    return {kind: float(getattr(info, kind)) for kind in kinds}


def processes(calls: NvmlCalls, handle: Any) -> tuple[GpuProcess, ...]:
    """Return the processes that compute, with their memory where the driver tells it."""
    found = calls.ask("nvmlDeviceGetComputeRunningProcesses_v3", handle)
    return tuple(
        GpuProcess(process.pid, float(process.usedGpuMemory))
        for process in found or ()
        if process.usedGpuMemory is not None
    )
