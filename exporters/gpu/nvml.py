"""GPUs by NVML (nvidia-ml-py): what there is without DCGM."""

import contextlib
import time
from collections.abc import Callable

import pynvml  # type: ignore[import-untyped]  # one module, without types

from vramscope.exporters.errors import SourceUnavailableError
from vramscope.exporters.gpu.nvml_calls import GONE, UnreadableGpuError, unavailable
from vramscope.exporters.gpu.nvml_device import NvmlDevice
from vramscope.exporters.gpu.nvml_events import XidEvents
from vramscope.exporters.signals.gpu import GpuReading, GpuSample

__all__ = ["NvmlSource"]


class NvmlSource:
    """Reads all GPUs of the host by NVML. One thread at a time.

    A quantity that a GPU, the driver or this user's rights don't give is absent, and not asked
    for again for five minutes. A GPU that is lost is an entry of ``errors``; it is opened anew at
    each read. When the library or the driver goes, each read tries to open it again.
    """

    name = "nvml"

    def __init__(
        self, *, per_link: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Open NVML.

        Args:
            per_link: whether bytes and errors are wanted NVLink by NVLink.
            clock: monotonic, in seconds.

        Raises:
            SourceUnavailableError: no library, no driver, no rights or no GPU.
        """
        self._per_link = per_link
        self._clock = clock
        self._devices: dict[int, NvmlDevice] = {}
        self._uuids: dict[int, str] = {}
        self._events = XidEvents(clock)
        self._driver_version = ""
        self._open = False
        self._last_count = 0
        self._turn = 0
        self._init()
        try:
            self._count()
        except SourceUnavailableError:
            self.close()
            raise

    def read(self) -> GpuReading:
        """Return what there is now.

        Raises:
            SourceUnavailableError: the library or the driver is gone; the next read opens it.
        """
        try:
            self._init()
            return self._read()
        except SourceUnavailableError:
            self.close()
            raise

    def close(self) -> None:
        """Let go of NVML; a later read opens it again. XID counts go on where they were."""
        if not self._open:
            return
        with contextlib.suppress(SourceUnavailableError, UnreadableGpuError):
            self._drop_devices()  # a library that is gone has nothing to free
        self._devices.clear()
        with contextlib.suppress(SourceUnavailableError):
            self._events.close()
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()
        self._open = False

    def _init(self) -> None:
        if self._open:
            return
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise unavailable(error) from error
        self._open = True
        try:
            self._driver_version = pynvml.nvmlSystemGetDriverVersion()
        except pynvml.NVMLError:
            self._driver_version = ""  # an info label; the GPUs read on

    def _count(self) -> int:
        try:
            count: int = pynvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as error:
            raise unavailable(error) from error
        if not count:
            raise SourceUnavailableError("nvml: the driver sees no GPU: nvidia-smi -L lists them")
        return count

    def _read(self) -> GpuReading:
        count = self._count()
        if count != self._last_count:
            self._drop_devices()  # indexes may have moved
            self._uuids.clear()
            self._last_count = count
        samples: list[GpuSample] = []
        errors = {}
        self._turn = (self._turn + 1) % count
        for index in range(count):
            try:
                device = self._device(index)
                samples.extend(device.read(slow_turn=index == self._turn))
            except UnreadableGpuError as error:
                errors[self._uuids.get(index, str(index))] = str(error)
                self._drop(index)
        self._events.drain()
        return GpuReading(
            samples=tuple(samples),
            errors=errors,
            xids=self._events.counts,
            indexes={uuid: index for index, uuid in self._uuids.items()},
        )

    def _device(self, index: int) -> NvmlDevice:
        device = self._devices.get(index)
        if device is None:
            try:
                handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            except pynvml.NVMLError as error:
                if error.value in GONE:
                    raise unavailable(error) from error
                raise UnreadableGpuError(f"nvmlDeviceGetHandleByIndex: {error}") from error
            device = self._devices[index] = NvmlDevice(
                handle, index, self._driver_version, self._clock, per_link=self._per_link
            )
            self._uuids[index] = device.identity.uuid
            self._events.watch(handle, device.identity.uuid)
        return device

    def _drop(self, index: int) -> None:
        device = self._devices.pop(index, None)
        if device is not None:
            with contextlib.suppress(UnreadableGpuError):
                device.close()

    def _drop_devices(self) -> None:
        for index in list(self._devices):
            self._drop(index)
