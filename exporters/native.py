"""Engines read by their own page, for one refresh; where the probe is too, it wins."""

import logging
from collections.abc import Iterable, Sequence

from vramscope.exporters.engine.host import Reading
from vramscope.exporters.engine.native.follow import Follower, Got
from vramscope.exporters.engine.native.names import EXPECTED
from vramscope.exporters.engine.native.served_by import listening_inodes, serves
from vramscope.exporters.engine.native.target import Target
from vramscope.exporters.refresh import NativePage, NativeReading
from vramscope.exporters.signals.samples import EngineSample

__all__ = ["NativeEngines"]

log = logging.getLogger("vramscope.native")


class NativeEngines:
    """Takes what the pages said last; asks for none itself.

    Args:
        follower: asks for the pages.
    """

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._said: set[tuple[Target, str]] = set()

    def read(self, engines: Iterable[EngineSample]) -> NativeReading:
        """Return what each page that was answered says.

        Args:
            engines: those with a record on this host.
        """
        probed = [engine for engine in engines if any(engine.capabilities.values())]
        pages, readings = [], []
        for target in self._follower.targets:
            got = self._follower.got.get(target)
            if got is None:
                continue  # not answered yet
            source = f"native:{target.name}"
            readings.append(Reading(source, error=got.error))
            if got.error is None:
                pages.append(self._page(target, got, source, probed))
        return NativeReading(tuple(pages), tuple(readings))

    def _page(
        self, target: Target, got: Got, source: str, probed: Sequence[EngineSample]
    ) -> NativePage:
        same = _same_engine(target, probed)
        ranks = {engine.dp_rank for engine in same}
        for engine in same:
            self._say(logging.INFO, target, f"engine {engine.engine} has a probe: shown from there")
        shown = tuple(sample for sample in got.samples if sample.dp_rank not in ranks)
        for sample in shown:
            self._say(
                logging.INFO,
                target,
                "no probe: preemptions are vLLM's own count, seconds late and without those of "
                "requests aborted meanwhile",
            )
            for field, metric in EXPECTED.items():
                if getattr(sample, field) is None:
                    self._say(logging.WARNING, target, f"no {metric}: what it gives is left out")
        return NativePage(target.name, source, bool(same), shown, got.at_s)

    def _say(self, level: int, target: Target, what: str) -> None:
        """Log a line once."""
        if (target, what) not in self._said:
            self._said.add((target, what))
            log.log(level, "native:%s: %s", target.name, what)


def _same_engine(target: Target, probed: Iterable[EngineSample]) -> list[EngineSample]:
    """Return the ranks of the engine behind a page that have a probe's record here.

    It is the engine of the target's name, or the one whose process answers on its port.
    """
    engines = list(probed)
    named = [engine for engine in engines if engine.engine == target.name]
    if named or target.local_port is None:
        return named
    inodes = listening_inodes(target.local_port)
    return [
        engine
        for engine in engines
        if inodes and any(serves(p.pid, inodes) for p in engine.processes if p.pid is not None)
    ]
