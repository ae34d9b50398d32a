"""CPU of whole refreshes of 8 GPUs, read by NVML: ``gpu_refresh.py ROUNDS``.

The library is the one that LD_LIBRARY_PATH leads to. Prints seconds of CPU a refresh as JSON.
"""

import json
import sys
import time

from vramscope.exporters.exposition.families import Families
from vramscope.exporters.exposition.gpus import add_gpus, nobody
from vramscope.exporters.exposition.rendered import Form, Format, Renderer
from vramscope.exporters.gpu.follower import GpuFollower
from vramscope.exporters.gpu.nvml import NvmlSource

PERIOD_S = 0.1
"""Profiling metrics are averages since the last read; closer reads would be cheaper."""


def main(rounds: int) -> None:
    """Refresh; read, follow, fill, render, and compress as for Prometheus."""
    source, follower, renderer = NvmlSource(), GpuFollower(), Renderer()
    cpu_s = []
    for _ in range(rounds + 3):
        time.sleep(PERIOD_S)
        start_s = time.process_time()
        families = Families()
        reading = follower.follow(source.read(), source.name)
        add_gpus(families, reading, "node", nobody, time.monotonic())
        page = renderer.render(families).page(Form(Format.OPENMETRICS, gzipped=True))
        cpu_s.append(time.process_time() - start_s)
    source.close()
    if len(reading.samples) != 8 or not page:
        sys.exit(f"want 8 GPUs, got {len(reading.samples)}: {reading.errors}")
    json.dump(cpu_s[3:], sys.stdout)  # the first ones find out what the GPUs offer


if __name__ == "__main__":
    main(int(sys.argv[1]))
