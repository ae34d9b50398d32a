"""An engine's device memory as metric families: what it knows itself, and what its GPUs add."""

from collections.abc import Iterable, Mapping

from vramscope.exporters.catalog import vram as catalog
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.signals.gpu import GpuSample
from vramscope.exporters.signals.samples import EngineSample
from vramscope.exporters.signals.vram import VramSample, device_parts, engine_parts

__all__ = ["add_vram", "add_vram_of_devices"]


def add_vram(families: Families, vram: Iterable[VramSample], who: tuple[str, ...]) -> None:
    """Add the parts that an engine knows; ``who`` has the values of the engine's labels."""
    for one in vram:
        _add(families, engine_parts(one), (*who, str(one.rank)))


def add_vram_of_devices(
    families: Families, engines: Iterable[EngineSample], gpus: Iterable[GpuSample]
) -> None:
    """Add the parts that it takes the GPU to know, for each worker whose GPU was read."""
    by_uuid = {gpu.gpu.uuid: gpu for gpu in gpus}
    for engine in engines:
        who = (engine.engine, engine.model, str(engine.dp_rank))
        for one in engine.vram:
            if one.gpu_uuid in by_uuid:
                parts = device_parts(one, by_uuid[one.gpu_uuid])
                _add(families, parts, (*who, str(one.rank)))


def _add(families: Families, parts: Mapping[str, float], who: tuple[str, ...]) -> None:
    for part, size in parts.items():
        families.add(catalog.VRAM, size, *who, part)
