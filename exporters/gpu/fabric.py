"""The host's fabric ports with counters that only go up, and rates."""

import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from vramscope.exporters.engine.host import Reading
from vramscope.exporters.gpu.counters import MonotonicCounters
from vramscope.exporters.gpu.infiniband import SYSFS, WORD_BYTES, read_port
from vramscope.exporters.gpu.rates import Rates
from vramscope.exporters.signals.fabric import FabricPort

__all__ = ["FABRIC_SOURCE", "FabricReading", "FabricSource"]

FABRIC_SOURCE = "fabric"


@dataclass(frozen=True, slots=True)
class FabricReading:
    """One read of all ports.

    Attributes:
        ports: those that could be read, by device and number.
        readings: empty on a host without RDMA devices, which is no failure.
    """

    ports: tuple[FabricPort, ...] = ()
    readings: tuple[Reading, ...] = ()


class FabricSource:
    """Follows the ports from read to read. One thread at a time.

    Args:
        root: of the RDMA devices in sysfs.
        clock: monotonic, seconds.
    """

    def __init__(self, root: Path = SYSFS, clock: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._clock = clock
        self._counters = MonotonicCounters()
        self._rates = Rates()
        self._keys: set[Hashable] = set()

    def read(self) -> FabricReading:
        """Return all ports; one that can't be read is an error beside the others."""
        try:
            devices = sorted(self._root.iterdir())
        except FileNotFoundError:
            return FabricReading()
        except OSError as error:
            failed = Reading(FABRIC_SOURCE, error=f"{self._root}: {error.strerror}")
            return FabricReading((), (failed,))
        if not devices:
            return FabricReading()
        self._keys = set()
        ports: list[FabricPort] = []
        errors: list[str] = []
        for device in devices:
            self._read_device(device, ports, errors)
        self._counters.forget(self._keys)
        self._rates.forget(self._keys)
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        why = errors[0] + more if errors else None
        return FabricReading(tuple(ports), (Reading(FABRIC_SOURCE, error=why),))

    def _read_device(self, device: Path, ports: list[FabricPort], errors: list[str]) -> None:
        folder = device / "ports"
        try:
            numbers = sorted(int(n.name) for n in folder.iterdir() if n.name.isdecimal())
        except FileNotFoundError:
            return  # gone since the folder was listed
        except OSError as error:
            errors.append(f"{folder}: {error.strerror}")
            return
        for number in numbers:
            port = read_port(device, number, self._clock())
            if port.state:
                ports.append(self._follow(port))
            elif device.exists():
                errors.append(f"{folder / str(number) / 'state'}: can't be read")

    def _follow(self, port: FabricPort) -> FabricPort:
        who = (port.device, port.port, port.node_guid)
        octets = self._upward(port.bytes_total, (*who, "bytes"), WORD_BYTES)
        rates = {
            way: self._rates.update((*who, "bytes", way), total, port.read_at_s)
            for way, total in octets.items()
        }
        wait = port.xmit_wait_ticks_total
        if wait is not None:
            wait = self._upward({"": wait}, (*who, "wait"))[""]
        return replace(
            port,
            bytes_total=octets,
            packets_total=self._upward(port.packets_total, (*who, "packets")),
            errors_total=self._upward(port.errors_total, (*who, "errors")),
            congestion_total=self._upward(port.congestion_total, (*who, "congestion")),
            xmit_wait_ticks_total=wait,
            bytes_per_second={way: rate for way, rate in rates.items() if rate is not None},
        )

    def _upward(
        self, values: Mapping[str, float], key: tuple[Hashable, ...], scale: float = 1.0
    ) -> dict[str, float]:
        """Return totals that only go up; ``scale`` is of the unit in which the device wraps."""
        totals = {}
        for name, value in values.items():
            self._keys.add((*key, name))
            totals[name] = self._counters.advance((*key, name), value / scale, "sysfs", scale)
        return totals
