"""One GPU by NVML: what it is, read once; what it does, at each refresh."""

from collections.abc import Callable, Mapping
from typing import Any

import pynvml  # type: ignore[import-untyped]  # one module, without types

from vramscope.exporters.gpu.nvml_calls import NvmlCalls, bus_id
from vramscope.exporters.gpu.nvml_fields import Field, FieldReader
from vramscope.exporters.gpu.nvml_gpm import GpmMeter
from vramscope.exporters.gpu.nvml_links import NVLINK_FIELDS, NvLinks
from vramscope.exporters.gpu.nvml_mig import MigInstances
from vramscope.exporters.gpu.nvml_quantities import (
    PCIE_RX_BYTES,
    PCIE_TX_BYTES,
    memory_bytes,
    processes,
)
from vramscope.exporters.gpu.throttle import throttle_reasons
from vramscope.exporters.signals.gpu import GpuIdentity, GpuSample, PcieSample

__all__ = ["NvmlDevice"]

SLOW_PERIOD_S = 10.0
"""Between reads of what changes seldom or takes long."""

MEMORY_TEMPERATURE, ENERGY_MJ, PCIE_REPLAYS = 82, 83, 94
FAST_FIELDS: tuple[Field, ...] = (
    (MEMORY_TEMPERATURE, 0),
    (ENERGY_MJ, 0),
    (PCIE_REPLAYS, 0),
    (PCIE_TX_BYTES, 0),
    (PCIE_RX_BYTES, 0),
    *NVLINK_FIELDS,
)
ECC_FIELDS = {
    3: ("corrected", "volatile"),
    4: ("uncorrected", "volatile"),
    5: ("corrected", "aggregate"),
    6: ("uncorrected", "aggregate"),
}
REMAPPED_FIELDS = {142: "correctable", 143: "uncorrectable"}
REMAP_PENDING, REMAP_FAILED = 144, 145
THROTTLE_NS_FIELDS = {
    74: "software_power_cap",
    75: "thermal",
    76: "sync_boost",
    77: "board_limit",
    79: "reliability",
    269: "software_thermal",
    270: "hardware_thermal",
    271: "hardware_power_brake",
}
HEALTH_FIELDS: tuple[Field, ...] = tuple(
    (field, 0)
    for field in (*ECC_FIELDS, *REMAPPED_FIELDS, REMAP_PENDING, REMAP_FAILED, *THROTTLE_NS_FIELDS)
)


class NvmlDevice:
    """Reads one GPU and its MIG instances. Lives until the GPU is lost or the list changes."""

    def __init__(
        self,
        handle: Any,
        index: int,
        driver_version: str,
        clock: Callable[[], float],
        *,
        per_link: bool,
    ) -> None:
        """Read what the GPU is.

        Args:
            handle: of the GPU.
            index: of the GPU.
            driver_version: of the host.
            clock: monotonic, in seconds.
            per_link: whether bytes and errors are wanted NVLink by NVLink.

        Raises:
            UnreadableGpuError: the GPU is lost.
            SourceUnavailableError: the library or the driver is gone.
        """
        self._handle = handle
        self._clock = clock
        self._calls = calls = NvmlCalls(clock)
        self.identity = GpuIdentity(
            index=index,
            uuid=calls.need("nvmlDeviceGetUUID", handle),
            name=calls.ask("nvmlDeviceGetName", handle) or "",
            pci_bus_id=bus_id(calls.ask("nvmlDeviceGetPciInfo", handle)),
            driver_version=driver_version,
            minor=calls.ask("nvmlDeviceGetMinorNumber", handle),
        )
        self._max_generation = calls.ask("nvmlDeviceGetMaxPcieLinkGeneration", handle)
        self._max_width = calls.ask("nvmlDeviceGetMaxPcieLinkWidth", handle)
        self._fast = FieldReader(calls, handle, FAST_FIELDS, clock)
        self._health = FieldReader(calls, handle, HEALTH_FIELDS, clock)
        self._health_values: dict[Field, float] = {}
        self._links = NvLinks(calls, handle, clock, per_link=per_link)
        self._gpm = GpmMeter(calls, handle, clock)
        self._mig = MigInstances(calls, handle, self.identity, clock)
        self._slow_at_s: float | None = None
        self._pcie_rate: dict[str, float] = {}
        self._pcie_rate_at_s: float | None = None

    def read(self, *, slow_turn: bool) -> tuple[GpuSample, ...]:
        """Return the GPU, and after it its MIG instances.

        Args:
            slow_turn: whether this GPU may now spend 40 ms on a rate that nothing else gives.

        Raises:
            UnreadableGpuError: the GPU is lost.
            SourceUnavailableError: the library or the driver is gone.
        """
        now_s = self._clock()
        if self._slow_at_s is None or now_s - self._slow_at_s >= SLOW_PERIOD_S:
            self._health_values = self._health.read()
            self._links.refresh_states()
            self._slow_at_s = now_s
        fields = self._fast.read()
        gpm = self._gpm.read()
        links = self._links.read(fields)
        health = self._health_values
        ages = {"health": self._slow_at_s}
        if links.links:
            ages["links"] = self._slow_at_s
        pcie = self._pcie(fields, gpm.get("pcie", {}), slow_turn=slow_turn)
        if self._pcie_rate_at_s is not None:
            ages["pcie"] = self._pcie_rate_at_s
        energy = fields.get((ENERGY_MJ, 0))
        power = self._calls.ask("nvmlDeviceGetPowerUsage", self._handle)
        sample = GpuSample(
            gpu=self.identity,
            read_at_s=now_s,
            memory_bytes=memory_bytes(self._calls, self._handle),
            utilization_ratio=self._utilization(),
            activity_ratio=gpm.get("activity", {}),
            clock_hz=self._clocks(),
            temperature_celsius=self._temperatures(fields),
            power_watts=None if power is None else power / 1e3,
            energy_joules_total=None if energy is None else energy / 1e3,
            throttle_reasons=self._throttle(),
            throttle_seconds_total={
                reason: health[field, 0] / 1e9
                for field, reason in THROTTLE_NS_FIELDS.items()
                if (field, 0) in health
            },
            ecc_errors_total={
                kind: health[field, 0] for field, kind in ECC_FIELDS.items() if (field, 0) in health
            },
            remapped_rows_total={
                kind: health[field, 0]
                for field, kind in REMAPPED_FIELDS.items()
                if (field, 0) in health
            },
            row_remap_failed=_flag(health.get((REMAP_FAILED, 0))),
            row_remap_pending=_flag(health.get((REMAP_PENDING, 0))),
            pcie=pcie,
            nvlink_bytes_total=links.bytes_total,
            nvlink_bytes_per_second=gpm.get("nvlink", {}) if links.links else {},
            nvlink_errors_total=links.errors_total,
            links=links.links,
            c2c_bytes_per_second=gpm.get("c2c", {}),
            processes=processes(self._calls, self._handle),
            family_read_at_s=ages,
        )
        return (sample, *self._mig.read(now_s))

    def close(self) -> None:
        """Free what was allocated; a lost GPU's library calls may fail, which changes nothing."""
        self._gpm.close()
        self._mig.close()

    def _pcie(
        self, fields: Mapping[Field, float], measured: dict[str, float], *, slow_turn: bool
    ) -> PcieSample:
        ways = (("tx", PCIE_TX_BYTES), ("rx", PCIE_RX_BYTES))
        counted = {way: fields[field, 0] for way, field in ways if (field, 0) in fields}
        if not counted and not self._gpm.supported:
            self._measure_pcie(slow_turn=slow_turn)
            measured = self._pcie_rate
        return PcieSample(
            bytes_total=counted,
            bytes_per_second=measured,
            generation=self._calls.ask("nvmlDeviceGetCurrPcieLinkGeneration", self._handle),
            max_generation=self._max_generation,
            width=self._calls.ask("nvmlDeviceGetCurrPcieLinkWidth", self._handle),
            max_width=self._max_width,
            replays_total=fields.get((PCIE_REPLAYS, 0)),
        )

    def _measure_pcie(self, *, slow_turn: bool) -> None:
        """Ask for the PCIe rates, which takes NVML 20 ms a direction."""
        now_s = self._clock()
        last_s = self._pcie_rate_at_s
        if not slow_turn or (last_s is not None and now_s - last_s < SLOW_PERIOD_S):
            return
        counters = {"tx": pynvml.NVML_PCIE_UTIL_TX_BYTES, "rx": pynvml.NVML_PCIE_UTIL_RX_BYTES}
        asked = {
            way: self._calls.ask("nvmlDeviceGetPcieThroughput", self._handle, counter)
            for way, counter in counters.items()
        }
        self._pcie_rate = {way: kb * 1e3 for way, kb in asked.items() if kb is not None}
        self._pcie_rate_at_s = now_s if self._pcie_rate else None

    def _utilization(self) -> dict[str, float]:
        found = {}
        rates = self._calls.ask("nvmlDeviceGetUtilizationRates", self._handle)
        if rates is not None:
            found = {"gpu": rates.gpu / 100, "memory_copy": rates.memory / 100}
        for unit, name in (
            ("encoder", "nvmlDeviceGetEncoderUtilization"),
            ("decoder", "nvmlDeviceGetDecoderUtilization"),
        ):
            answer = self._calls.ask(name, self._handle)
            if answer is not None:
                found[unit] = answer[0] / 100
        return found

    def _clocks(self) -> dict[str, float]:
        kinds = {"sm": pynvml.NVML_CLOCK_SM, "memory": pynvml.NVML_CLOCK_MEM}
        asked = {
            clock: self._calls.ask(
                "nvmlDeviceGetClockInfo", self._handle, kind, key=f"clock/{kind}"
            )
            for clock, kind in kinds.items()
        }
        return {clock: megahertz * 1e6 for clock, megahertz in asked.items() if megahertz}

    def _temperatures(self, fields: Mapping[Field, float]) -> dict[str, float]:
        found = {}
        sensor = pynvml.NVML_TEMPERATURE_GPU
        gpu = self._calls.ask("nvmlDeviceGetTemperatureV", self._handle, sensor)
        if gpu is None:  # drivers before 565
            gpu = self._calls.ask("nvmlDeviceGetTemperature", self._handle, sensor)
        if gpu is not None:
            found["gpu"] = float(gpu)
        memory = fields.get((MEMORY_TEMPERATURE, 0))
        if memory:  # 0: a GPU without the sensor
            found["memory"] = memory
        return found

    def _throttle(self) -> frozenset[str] | None:
        mask = self._calls.ask("nvmlDeviceGetCurrentClocksEventReasons", self._handle)
        if mask is None:  # drivers before 535
            mask = self._calls.ask("nvmlDeviceGetCurrentClocksThrottleReasons", self._handle)
        return None if mask is None else throttle_reasons(mask)


def _flag(value: float | None) -> bool | None:
    return None if value is None else bool(value)
