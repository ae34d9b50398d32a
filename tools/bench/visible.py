"""How soon another process sees a step: ``visible.py STEPS SCRATCH``.

A scheduler in steady decode writes its record; this process reads it in a loop, as the
controller's reader does. Prints JSON: seconds from the time written in a step to its sight.
"""

import json
import multiprocessing
import os
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from modelless import Modelless, configuration

from vramscope.exporters.engine.probe import register
from vramscope.exporters.engine.reader import RecordReader

BATCH = 64
POLL_S = 0.0005
SEED = 1


def main(steps: int, scratch: Path) -> list[float]:
    """Have a process step, and watch its record."""
    os.environ["VRAMSCOPE_RUN_DIR"] = str(scratch / "run")
    config = configuration(scratch, BATCH)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=write, args=(theirs, config, steps), daemon=True)
    process.start()
    record = RecordReader(ours.recv())
    ours.send("go")
    took_s, last = [], record.step()["steps"]
    while not ours.poll():
        step = record.step()
        if step["steps"] != last:
            took_s.append(time.monotonic() - step["time_s"])
            last = step["steps"]
        time.sleep(POLL_S)
    process.join()
    return took_s


def write(pipe: Connection, config: Any, steps: int) -> None:
    """Step until the reader has had its chances."""
    register()
    engine = Modelless(config.scheduler_config.get_scheduler_cls(), config, BATCH, SEED)
    pipe.send(engine.scheduler._vramscope_probe.record)  # noqa: SLF001
    pipe.recv()
    for _ in range(steps):
        engine.step_s()
    pipe.send("done")


if __name__ == "__main__":
    result = main(int(sys.argv[1]), Path(sys.argv[2]))
    sys.stdout.write("\n" + json.dumps(result) + "\n")
