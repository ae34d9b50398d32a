"""Which source GPUs are read from: the best that works now, and a better one once it does."""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, get_args

from vramscope.exporters.errors import SourceUnavailableError, VramscopeError
from vramscope.exporters.gpu.source import GpuSource
from vramscope.exporters.signals.gpu import GpuReading

__all__ = ["AutoSource", "NoSource", "Open", "Wanted", "open_source"]

log = logging.getLogger(__name__)

Wanted = Literal["auto", "dcgm", "nvml", "none"]

Open = Callable[[], GpuSource]
"""Opens a source, or raises ``SourceUnavailableError``."""

RETRY_S = 60.0
"""How often better sources are tried while a worse one, or none, is read."""
RETRY_ONLY_S = 10.0
"""How often the one source that was asked for is tried while it is away."""


def open_source(
    wanted: str,
    dcgm_address: str = "",
    *,
    period_s: float = 1.0,
    dcgm_fields: Collection[int] = (),
    per_link: bool = False,
    clock: Callable[[], float] = time.monotonic,
    openers: Mapping[str, Open] | None = None,
) -> GpuSource:
    """Return the source of ``--gpu-source``. It may be away now: then its reads say why.

    Args:
        wanted: ``auto``, ``dcgm``, ``nvml`` or ``none``.
        dcgm_address: empty: an engine embedded in this process; else ``host:port`` or
            ``unix:///path``.
        period_s: how often DCGM reads the driver.
        dcgm_fields: ids that ``--compat dcgm`` wants beyond what samples hold.
        per_link: read each NVLink's traffic and errors.
        clock: monotonic, seconds.
        openers: sources by name, best first; None: DCGM, then NVML.

    Raises:
        VramscopeError: an unknown word.
    """
    if wanted not in get_args(Wanted):
        choices = "|".join(get_args(Wanted))
        raise VramscopeError(f"--gpu-source {wanted}: want one of {choices}")
    if wanted == "none":
        return NoSource()
    known = openers or {
        "dcgm": partial(_open_dcgm, dcgm_address, period_s, dcgm_fields, per_link, clock),
        "nvml": partial(_open_nvml, per_link, clock),
    }
    if wanted == "auto":
        return AutoSource(known, clock=clock)
    return AutoSource({wanted: known[wanted]}, clock=clock, retry_s=RETRY_ONLY_S)


class NoSource:
    """Reads nothing, without fail."""

    name = "none"

    def read(self) -> GpuReading:
        """Return a reading of no GPU."""
        return GpuReading(())

    def close(self) -> None:
        """Nothing to close."""


class AutoSource:
    """Reads from the best source that works. One thread at a time.

    While it is not the best one that is read, the better ones are tried every ``retry_s``. A
    source that fails is asked once more at once, which is when it opens itself anew; only if
    that fails too is a worse one taken. XIDs stay counted when the source changes.

    Args:
        openers: by name, best first.
        clock: monotonic, seconds.
        retry_s: how often better sources are tried.
    """

    def __init__(
        self,
        openers: Mapping[str, Open],
        clock: Callable[[], float] = time.monotonic,
        retry_s: float = RETRY_S,
    ) -> None:
        self._openers = dict(openers)
        self._names = tuple(openers)
        self._clock = clock
        self._retry_s = retry_s
        self._source: GpuSource | None = None
        self._failures: dict[str, str] = {}
        self._xids_before: dict[tuple[str, int], int] = {}
        self._xids_now: Mapping[tuple[str, int], int] = {}
        self._failing = False
        self._tried_s = clock()
        self.name = self._names[0]
        """Of what is read; the best of all while nothing is."""
        self._take_one_of(self._names)  # the first read says it when there is none

    def read(self) -> GpuReading:
        """Return what there is now.

        Raises:
            SourceUnavailableError: no source works; the message says why of each.
        """
        self._try_better()
        if self._source is None:
            raise SourceUnavailableError(self._nothing())
        try:
            reading = self._read_twice(self._source)
        except SourceUnavailableError as error:
            self._failing = True
            self._failures[self.name] = str(error)
            self._tried_s = self._clock()
            others = [name for name in self._names if name != self.name]
            if not self._take_one_of(others):
                raise SourceUnavailableError(self._nothing()) from error
            reading = self._source.read()
        self._failing = False
        self._xids_now = reading.xids
        return replace(reading, xids=self._all_xids())

    def close(self) -> None:
        """Close what is read."""
        if self._source is not None:
            self._source.close()
        self._source = None

    def _read_twice(self, source: GpuSource) -> GpuReading:
        try:
            return source.read()
        except SourceUnavailableError as error:
            if self._failing:  # it has opened itself anew at each read since, in vain
                raise
            log.warning("gpu: %s: %s: opening it anew", source.name, error)
            return source.read()

    def _try_better(self) -> None:
        if self._clock() - self._tried_s < self._retry_s:
            return
        if self._source is None:
            better: Sequence[str] = self._names
        else:
            better = self._names[: self._names.index(self.name)]
        if better:
            self._tried_s = self._clock()
            self._take_one_of(better)

    def _take_one_of(self, names: Sequence[str]) -> bool:
        """Open the first that opens, and let go of what was read before."""
        for name in names:
            try:
                source = self._openers[name]()
            except SourceUnavailableError as error:
                self._failures[name] = str(error)
                continue
            self._xids_before, self._xids_now = self._all_xids(), {}
            self.close()
            self._source, self.name = source, name
            self._failures.pop(name, None)
            why = [
                f"not {other}: {self._failures[other]}"
                for other in self._names[: self._names.index(name)]
                if other in self._failures
            ]
            log.info("gpu: %s", "; ".join([f"reading from {name}", *why]))
            return True
        return False

    def _all_xids(self) -> dict[tuple[str, int], int]:
        total = dict(self._xids_before)
        for event, count in self._xids_now.items():
            total[event] = total.get(event, 0) + count
        return total

    def _nothing(self) -> str:
        return "no GPU can be read: " + "; ".join(
            f"{name}: {self._failures[name]}" for name in self._names if name in self._failures
        )


def _open_dcgm(
    address: str,
    period_s: float,
    fields: Collection[int],
    per_link: bool,
    clock: Callable[[], float],
) -> GpuSource:
    from vramscope.exporters.gpu.dcgm import DcgmSource

    return DcgmSource(address, period_s, None, fields, per_link, clock)


def _open_nvml(per_link: bool, clock: Callable[[], float]) -> GpuSource:
    try:
        from vramscope.exporters.gpu.nvml import NvmlSource
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("vramscope"):
            raise
        raise SourceUnavailableError(
            f"Python package {error.name!r} is not installed: pip install 'vramscope[exporter]'"
        ) from error
    return NvmlSource(per_link=per_link, clock=clock)
