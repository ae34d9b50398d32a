"""GPM, the profiling counters of Hopper and later: no DCGM, no profiler lock, two samples."""

import math
from collections.abc import Callable
from typing import Any

import pynvml  # type: ignore[import-untyped]  # one module, without types

from vramscope.exporters.gpu.nvml_calls import NvmlCalls

__all__ = ["GpmMeter"]

MIN_INTERVAL_S = 0.105
"""NVML wants samples 100 ms apart by its own clock; ours is read a moment before."""
MIB = 1024.0 * 1024.0

METRICS: dict[int, tuple[str, str, float]] = {
    1: ("activity", "graphics", 0.01),
    2: ("activity", "sm", 0.01),
    3: ("activity", "sm_occupancy", 0.01),
    5: ("activity", "tensor", 0.01),
    10: ("activity", "dram", 0.01),
    20: ("pcie", "tx", MIB),
    21: ("pcie", "rx", MIB),
    60: ("nvlink", "rx", MIB),
    61: ("nvlink", "tx", MIB),
    100: ("c2c", "tx", MIB),
    101: ("c2c", "rx", MIB),
}
"""Family, key and factor by ``NVML_GPM_METRIC_*``; they come in percent and in MiB a second."""

Activity = dict[str, dict[str, float]]
"""By family (``activity``: ratios; ``pcie``, ``nvlink``, ``c2c``: bytes a second), then by key."""


class GpmMeter:
    """Measures from one read to the next, of a GPU or of one MIG instance of it."""

    def __init__(
        self,
        calls: NvmlCalls,
        handle: Any,
        clock: Callable[[], float],
        gpu_instance: int | None = None,
    ) -> None:
        """Take the first sample, where the GPU can.

        Args:
            calls: of this GPU.
            handle: of the GPU, also for a MIG instance of it.
            clock: monotonic, in seconds.
            gpu_instance: id of the MIG GPU instance.
        """
        self._calls = calls
        self._handle = handle
        self._clock = clock
        self._gpu_instance = gpu_instance
        self._key = "gpm" if gpu_instance is None else f"gpm/{gpu_instance}"
        self._samples: list[Any] = []
        self._taken_at_s: float | None = None
        self._last: Activity = {}
        support = calls.ask("nvmlGpmQueryDeviceSupport", handle)
        self.supported = bool(support is not None and support.isSupportedDevice)
        if self.supported:
            self.read()

    def read(self) -> Activity:
        """Return the means since the read before, or, if that was just now, the last ones."""
        if not self.supported:
            return {}
        now_s = self._clock()
        if self._taken_at_s is not None and now_s - self._taken_at_s < MIN_INTERVAL_S:
            return self._last
        while len(self._samples) < 2:
            sample = self._calls.ask("nvmlGpmSampleAlloc")
            if sample is None:
                return {}
            self._samples.append(sample)
        before, now = self._samples
        if self._take(now) is None:
            self._taken_at_s, self._last = None, {}
            return {}
        self._last = {} if self._taken_at_s is None else self._measure(before, now)
        self._samples = [now, before]
        self._taken_at_s = now_s
        return self._last

    def close(self) -> None:
        """Free the samples."""
        while self._samples:
            self._calls.ask("nvmlGpmSampleFree", self._samples.pop())

    def _take(self, sample: Any) -> Any:
        if self._gpu_instance is None:
            return self._calls.ask("nvmlGpmSampleGet", self._handle, sample, key=self._key)
        return self._calls.ask(
            "nvmlGpmMigSampleGet", self._handle, self._gpu_instance, sample, key=self._key
        )

    def _measure(self, before: Any, now: Any) -> Activity:
        request = pynvml.c_nvmlGpmMetricsGet_t()
        request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics = len(METRICS)
        request.sample1, request.sample2 = before, now
        for slot, metric in enumerate(METRICS):
            request.metrics[slot].metricId = metric
        if self._calls.ask("nvmlGpmMetricsGet", request, remember=False) is None:
            return {}
        found: Activity = {}
        for slot, (family, key, factor) in enumerate(METRICS.values()):
            metric = request.metrics[slot]
            if metric.nvmlReturn == 0 and math.isfinite(metric.value):
                found.setdefault(family, {})[key] = metric.value * factor
        return found
