"""What reading many engines costs: records as the probe writes them, open, read again and again."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from figures import Figure, figure

from vramscope.exporters.engine.probe.scheduler import STEP_FIELDS
from vramscope.exporters.engine.reader import RecordReader
from vramscope.exporters.engine.writer import RecordWriter

__all__ = ["read_engines"]

ENGINES = 64
ROUNDS = 300
POOL_FIELDS = ("pool0_free_now", "pool0_evictable_now")
TARGET_S = 0.001


def read_engines(folder: Path) -> Iterator[Figure]:
    """Measure reading the step of each of 64 engines, as the controller does at 10 to 100 Hz."""
    fields = (*STEP_FIELDS, *POOL_FIELDS)
    with ExitStack() as stack:
        readers = []
        for n in range(ENGINES):
            writer = RecordWriter(folder, f"engine{n}", {"role": "engine"}, fields)
            stack.callback(writer.close)
            writer.write_step([float(n)] * len(fields))
            readers.append(RecordReader(str(writer.path)))
            stack.callback(readers[-1].close)
        took_s = []
        for _ in range(ROUNDS):
            started_s = time.perf_counter()
            for reader in readers:
                reader.step()
            took_s.append(time.perf_counter() - started_s)
        yield figure(f"read_{ENGINES}_engines", took_s, "s", TARGET_S)
