"""What a live engine's memory is, beside what was computed for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vramscope.exporters.engine.host import HostRecords
from vramscope.exporters.errors import VramscopeError
from vramscope.exporters.signals.memory.budget import Budget
from vramscope.exporters.signals.samples import EngineSample
from vramscope.exporters.signals.vram import engine_parts

__all__ = ["Comparison", "NoEngineError", "Row", "compare", "find_engine"]

PARTS = ("weights", "lora_slots", "activations", "graphs", "kv_pool")


class NoEngineError(VramscopeError):
    """There is no such live engine on this host."""


@dataclass(frozen=True, slots=True)
class Row:
    """One part.

    Attributes:
        part: its name.
        planned_bytes: by the plan.
        measured_bytes: of the rank that has the most; None where the engine does not know.
    """

    part: str
    planned_bytes: int
    measured_bytes: int | None

    @property
    def error(self) -> float | None:
        """How far the plan is off, as a share of what was measured."""
        if not self.measured_bytes:
            return None
        return self.planned_bytes / self.measured_bytes - 1


@dataclass(frozen=True, slots=True)
class Comparison:
    """A live engine beside its plan.

    Attributes:
        engine: its id.
        rows: by part.
        blocks: that the engine has; None where that is not known.
        pool_from_blocks_bytes: what so many blocks take by the plan's layout, vLLM's null block
            included.
    """

    engine: str
    rows: tuple[Row, ...]
    blocks: int | None
    pool_from_blocks_bytes: int | None

    @property
    def measured(self) -> Mapping[str, int]:
        """Bytes by part, of what was measured and takes room from the pool."""
        return {
            row.part: row.measured_bytes
            for row in self.rows
            if row.measured_bytes is not None and row.part != "kv_pool"
        }


def find_engine(folder: Path, engine: str, ranks: int) -> EngineSample:
    """Return a live engine of this host.

    Args:
        folder: the run directory.
        engine: its id.
        ranks: that the plan is for; an engine with another number has other parts.

    Raises:
        NoEngineError: none has this id, or its record can't be read, or its ranks are others.
    """
    host = HostRecords(folder)
    try:
        readings = host.read()
    finally:
        host.close()
    samples = [reading.sample for reading in readings if reading.sample is not None]
    for sample in samples:
        if sample.engine == engine:
            if sample.ranks != ranks:
                raise NoEngineError(
                    f"{engine}: runs on {sample.ranks} ranks, the plan on {ranks}: "
                    "want --tp and --pp as it was started"
                )
            return sample
    errors = [reading.error for reading in readings if reading.error]
    known = ", ".join(sorted({sample.engine for sample in samples}))
    want = f"want one of {known}" if known else "; ".join(errors) or "no engine runs here"
    raise NoEngineError(f"{engine}: no such engine in {folder}: {want}")


def compare(budget: Budget, sample: EngineSample) -> Comparison:
    """Set an engine's memory beside a plan's.

    Args:
        budget: for the same model and settings.
        sample: of the engine.
    """
    measured: dict[str, int] = {}
    for vram in sample.vram:
        for name, size in engine_parts(vram).items():
            measured[name] = max(measured.get(name, 0), int(size))
    blocks = sum(kv.blocks for kv in sample.kv) or None
    layout = budget.layout
    pools = len(sample.kv)
    return Comparison(
        engine=sample.engine,
        rows=tuple(Row(name, budget.parts[name], measured.get(name)) for name in PARTS),
        blocks=blocks,
        pool_from_blocks_bytes=None
        if blocks is None or layout is None
        else (blocks + pools) * layout.block_bytes,
    )
