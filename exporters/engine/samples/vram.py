"""The samples of an engine's device memory."""

import math

from vramscope.exporters.engine.reader import RecordReader
from vramscope.exporters.signals.vram import VramSample

__all__ = ["vram_sample"]

ALLOCATOR, GRAPHS_ALLOCATOR, ASLEEP = "allocator_bytes", "graphs_allocator_bytes", "asleep"


def vram_sample(worker: RecordReader) -> VramSample:
    """Build the sample of one worker's device memory.

    Raises:
        KeyError, TypeError, ValueError: the record lacks a field or has a wrong one.
    """
    fields = {
        name.removeprefix("vram_"): value
        for name, value in worker.scan().items()
        if name.startswith("vram_")
    }
    known = {name: value for name, value in fields.items() if not math.isnan(value)}
    uuids = worker.header.get("gpu_uuids") or ("",)
    return VramSample(
        rank=int(worker.header["rank"]),
        pid=worker.pid(),
        gpu_uuid=str(uuids[0]),
        bytes={
            name.removesuffix("_bytes"): value
            for name, value in known.items()
            if name not in (ALLOCATOR, GRAPHS_ALLOCATOR, ASLEEP)
        },
        allocator_bytes=known.get(ALLOCATOR),
        graphs_allocator_bytes=fields[GRAPHS_ALLOCATOR],
        asleep=bool(fields[ASLEEP]),
    )
