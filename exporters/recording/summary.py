"""What is in a recording."""

import json
import time
from collections import Counter
from dataclasses import dataclass

from vramscope.exporters.recording.reader import Recording

__all__ = ["Summary", "summarise"]


@dataclass(frozen=True, slots=True)
class Summary:
    """A recording at a glance.

    Attributes:
        version: of vramscope, that recorded it.
        hostname: where.
        started_unix_s: when.
        seconds: from the first refresh to the last.
        refreshes: how many.
        size_bytes: of the file.
        engines: refreshes that each engine was in.
        gpus: refreshes that each GPU was in, by UUID.
        failures: refreshes in which each source failed.
        cut: the file ends within a refresh.
    """

    version: str
    hostname: str
    started_unix_s: float
    seconds: float
    refreshes: int
    size_bytes: int
    engines: dict[str, int]
    gpus: dict[str, int]
    failures: dict[str, int]
    cut: bool

    def as_json(self) -> str:
        """Return one JSON object."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__}, indent=2) + "\n"

    def as_text(self) -> str:
        """Return some lines for people."""
        when = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(self.started_unix_s))
        lines = [
            f"recorded {when} on {self.hostname} by vramscope {self.version}",
            f"{self.refreshes} refreshes in {self.seconds:.0f} s, {self.size_bytes} bytes",
            *_rows("engine", self.engines, "seen in"),
            *_rows("GPU", self.gpus, "seen in"),
            *_rows("source", self.failures, "failed in"),
        ]
        if self.cut:
            lines.append("ends within a refresh: its recorder was killed, or still writes")
        return "\n".join(lines) + "\n"


def summarise(recording: Recording) -> Summary:
    """Read a recording to its end and return what is in it."""
    engines, gpus, failures = Counter[str](), Counter[str](), Counter[str]()
    first_s = last_s = None
    refreshes = 0
    for refresh in recording:
        refreshes += 1
        first_s = refresh.at_s if first_s is None else first_s
        last_s = refresh.at_s
        # A rank of an engine is a sample of its own.
        engines.update({sample.engine for sample in refresh.samples})
        engines.update({page.engine for page in refresh.native.pages if page.samples})
        if refresh.hardware is not None:
            gpus.update({sample.gpu.uuid for sample in refresh.hardware.gpus.samples})
        failures.update({r.source for r in refresh.readings if r.error is not None})
    return Summary(
        version=recording.started.version,
        hostname=recording.started.hostname,
        started_unix_s=recording.started.unix_s,
        seconds=(last_s - first_s) if first_s is not None and last_s is not None else 0.0,
        refreshes=refreshes,
        size_bytes=recording.path.stat().st_size,
        engines=dict(engines),
        gpus=dict(gpus),
        failures=dict(failures),
        cut=recording.cut,
    )


def _rows(what: str, counts: dict[str, int], how: str) -> list[str]:
    return [f"{what} {name}: {how} {count}" for name, count in counts.items()]
