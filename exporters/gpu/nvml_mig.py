"""The MIG instances of one GPU by NVML."""

import contextlib
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from vramscope.exporters.gpu.nvml_calls import NvmlCalls, UnreadableGpuError
from vramscope.exporters.gpu.nvml_gpm import GpmMeter
from vramscope.exporters.gpu.nvml_quantities import memory_bytes, processes
from vramscope.exporters.signals.gpu import GpuIdentity, GpuSample

__all__ = ["MigInstances", "mig_profile"]

GIB_OF_MB = 1024


class _Instance(NamedTuple):
    calls: NvmlCalls
    identity: GpuIdentity
    gpm: GpmMeter


class MigInstances:
    """Follows the layout, which an operator may change at any time."""

    def __init__(
        self, calls: NvmlCalls, handle: Any, parent: GpuIdentity, clock: Callable[[], float]
    ) -> None:
        self._calls = calls
        self._handle = handle
        self._parent = parent
        self._clock = clock
        self._instances: dict[str, _Instance] = {}

    def read(self, now_s: float) -> list[GpuSample]:
        """Return a sample an instance; none when MIG is off."""
        mode = self._calls.ask("nvmlDeviceGetMigMode", self._handle)
        slots = 0
        if mode is not None and mode[0]:
            slots = self._calls.ask("nvmlDeviceGetMaxMigDeviceCount", self._handle) or 0
        present = {}
        for slot in range(slots):
            mig = self._calls.ask(
                "nvmlDeviceGetMigDeviceHandleByIndex", self._handle, slot, remember=False
            )
            uuid = None if mig is None else self._calls.ask("nvmlDeviceGetUUID", mig)
            if uuid is not None:
                present[uuid] = mig
        for uuid in self._instances.keys() - present:
            self._instances.pop(uuid).gpm.close()
        samples = []
        for uuid, mig in present.items():
            with contextlib.suppress(UnreadableGpuError):  # destroyed since the list was made
                samples.append(self._sample(uuid, mig, now_s))
        return samples

    def close(self) -> None:
        """Free what was allocated."""
        while self._instances:
            self._instances.popitem()[1].gpm.close()

    def _sample(self, uuid: str, mig: Any, now_s: float) -> GpuSample:
        instance = self._instances.get(uuid)
        if instance is None:
            instance = self._instances[uuid] = self._open(uuid, mig)
        activity = instance.gpm.read().get("activity", {})
        return GpuSample(
            gpu=instance.identity,
            read_at_s=now_s,
            memory_bytes=memory_bytes(instance.calls, mig),
            activity_ratio=activity,
            processes=processes(instance.calls, mig),
        )

    def _open(self, uuid: str, mig: Any) -> _Instance:
        calls = NvmlCalls(self._clock)
        number = calls.ask("nvmlDeviceGetGpuInstanceId", mig)
        name = calls.ask("nvmlDeviceGetName", mig) or ""
        attributes = calls.ask("nvmlDeviceGetAttributes_v2", mig)
        identity = replace(
            self._parent,
            uuid=uuid,
            parent_uuid=self._parent.uuid,
            mig_profile=mig_profile(
                name,
                0 if attributes is None else attributes.gpuInstanceSliceCount,
                0 if attributes is None else attributes.memorySizeMB,
            ),
            mig_instance="" if number is None else str(number),
        )
        return _Instance(calls, identity, GpmMeter(calls, self._handle, self._clock, number))


def mig_profile(name: str, slices: int, memory_mb: int) -> str:
    """Return a profile's name: from the device's name, else from its size.

    >>> mig_profile("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 1, 9856)
    '1g.10gb'
    >>> mig_profile("NVIDIA H100 80GB HBM3", 3, 40448)
    '3g.40gb'
    """
    found = re.search(r"MIG (\S+)$", name)
    if found:
        return found[1]
    return f"{slices}g.{round(memory_mb / GIB_OF_MB)}gb" if slices else "unknown"
