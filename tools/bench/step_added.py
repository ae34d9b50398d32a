"""What the probe adds to a scheduler's step: ``step_added.py BATCH STEPS SCRATCH``.

Three schedulers with the same load, attached to as vLLM attaches the probe: one with its hooks,
two with clocks in their places and no hook. Prints JSON, for each of the three and each step:
seconds in the hooks' places, and of the whole step; and seconds of a scan by part.

Why not whole steps alone: where a process's memory lies moves a step of 256 requests by ten
times what is to be measured. The hooks' own time does not hang on that, and it has in it what
cold caches add, since vLLM's step runs in between.
"""

import json
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from hook_timer import HookTimer
from modelless import Modelless, configuration
from turns import Ask, forked

TURN_STEPS = 10
WARM_TURNS = 10
SCANS = 50
PWRITES = 200
STEP_CELL = bytes(256)
SEED = 1


def main(batch: int, steps: int, scratch: Path) -> dict[str, Any]:
    """Step all three in turns; return what they took."""
    os.environ["VRAMSCOPE_RUN_DIR"] = str(scratch / "run")
    config = configuration(scratch, batch)

    def bare() -> Ask:
        return engine(config, batch, HookTimer(attach=False))

    def probed() -> Ask:
        return engine(config, batch, HookTimer(attach=True))

    with forked({"bare": bare, "probed": probed, "bare_again": bare}) as turns:
        return {
            "steps": turns.step(steps // TURN_STEPS, WARM_TURNS),
            "scans_s": turns.ask("probed", "scan"),
            "pwrite_s": turns.ask("bare_again", "pwrite"),
            "hooks": {name: turns.ask(name, "hooks") for name in ("bare", "probed")},
        }


def engine(config: Any, batch: int, timer: HookTimer) -> Ask:
    """Make a scheduler in steady decode."""
    from vramscope.exporters.engine.probe import register

    register()
    running = Modelless(config.scheduler_config.get_scheduler_cls(), config, batch, SEED)
    timer.take()
    seconds, calls, steps = defaultdict[str, float](float), Counter[str](), 0

    def step() -> tuple[float, float]:
        nonlocal steps
        whole_s = running.step_s()
        by_hook_s, by_hook = timer.take()
        for name, hook_s in by_hook_s.items():
            seconds[name] += hook_s
        calls.update(by_hook)
        steps += 1
        return sum(by_hook_s.values()), whole_s

    def ask(word: str) -> Any:
        if word == "step":
            return [step() for _ in range(TURN_STEPS)]
        if word == "pwrite":
            return pwrites_s(running, Path(os.environ["VRAMSCOPE_RUN_DIR"]) / "pwrite")
        if word == "hooks":
            return {name: (calls[name] / steps, seconds[name] / steps) for name in calls}
        return scans_s(running.scheduler._vramscope_probe)  # noqa: SLF001

    return ask


def scans_s(probe: Any) -> dict[str, float]:
    """Return the median time of a whole scan, and of each part's."""
    now_s = time.monotonic()
    found = {"whole": _median_s(partial(probe._scan, now_s))}  # noqa: SLF001
    for part in probe._parts:  # noqa: SLF001
        found[type(part).__name__.lower()] = _median_s(partial(part.scan, now_s))
    return found


def pwrites_s(running: Modelless, file: Path) -> float:
    """Return the median time of one ``pwrite`` of a step's size after each step of vLLM's.

    What no probe that writes a file after each step can go below.
    """
    fd = os.open(file, os.O_RDWR | os.O_CREAT)
    took_s = []
    for _ in range(PWRITES):
        running.step_s()
        started_s = time.perf_counter()
        os.pwrite(fd, STEP_CELL, 0)
        took_s.append(time.perf_counter() - started_s)
    os.close(fd)
    return median(took_s)


def _median_s(call: Callable[[], Any]) -> float:
    took_s = []
    for _ in range(SCANS):
        started_s = time.perf_counter()
        call()
        took_s.append(time.perf_counter() - started_s)
    return median(took_s)


if __name__ == "__main__":
    result = main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
    sys.stdout.write("\n" + json.dumps(result) + "\n")
