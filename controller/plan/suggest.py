"""Settings for a model on a GPU, from what fits."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from vramscope.exporters.signals.memory.budget import Budget, EngineShape, budget
from vramscope.exporters.signals.memory.model import Model
from vramscope.exporters.signals.memory.quantization import Quantization

__all__ = ["Suggestion", "suggest"]

GIB = 1024**3
OUTSIDE_SHARE = 0.03
OUTSIDE_BYTES = GIB
MOST_SEQUENCES = 1024
MOST_WATERMARK = 0.05
LORA_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What to give vLLM, under its names, and why.

    Attributes:
        shape: with the settings in it.
        budget: with that shape.
        why: by setting.
    """

    shape: EngineShape
    budget: Budget
    why: dict[str, str]


def suggest(
    model: Model,
    quantization: Quantization | None,
    shape: EngineShape,
    total_bytes: int,
    lengths: Sequence[int],
    adapters: int = 0,
) -> Suggestion | None:
    """Return settings under which requests of the middle length run without preemption.

    Args:
        model: to be served.
        quantization: of its matrices.
        shape: what is given already; its utilisation, sequences, watermark and slots are replaced.
        total_bytes: of the GPU.
        lengths: of requests, in tokens; ascending.
        adapters: LoRA adapters that are served.

    Returns:
        None where nothing fits at any utilisation.

    Raises:
        LayoutError, LayoutUnknownError: as ``budget``.
    """
    outside = max(OUTSIDE_BYTES, int(total_bytes * OUTSIDE_SHARE))
    utilization = max(0.01, math.floor((1 - outside / total_bytes) * 100) / 100)
    wide = replace(shape, gpu_memory_utilization=utilization, max_loras=0, watermark=0.0)
    plain = budget(model, quantization, wide, total_bytes)
    if not plain.fits or plain.layout is None:
        return None
    why = {"gpu_memory_utilization": f"{outside / GIB:.1f} GiB stay for what vLLM does not count"}
    if adapters:
        wide = replace(wide, max_loras=1)
        one = budget(model, quantization, wide, total_bytes).parts["lora_slots"]
        room = int(LORA_SHARE * plain.parts["kv_pool"])
        slots = max(1, min(adapters, room // one if one else adapters))
        wide = replace(wide, max_loras=slots)
        why["max_loras"] = (
            f"{slots} of {adapters} adapters at once, {one / GIB:.2f} GiB a slot, at most "
            f"{LORA_SHARE:.0%} of the pool"
        )
    middle = lengths[len(lengths) // 2]
    # Fewer sequences leave more room, since the sampler's rows are fewer: so down from the most.
    sequences = MOST_SEQUENCES
    found = budget(model, quantization, replace(wide, max_num_seqs=sequences), total_bytes)
    while found.requests(middle) < sequences and sequences > 1:
        sequences = max(1, min(sequences - 1, max(found.requests(middle), sequences // 2)))
        found = budget(model, quantization, replace(wide, max_num_seqs=sequences), total_bytes)
    if not found.fits or found.layout is None:
        return None
    why["max_num_seqs"] = f"so many requests of {middle:,} tokens fit at once, at most 1024"
    groups = sum(count for _, count in found.layout.tables)
    watermark = min(MOST_WATERMARK, sequences * groups / found.blocks)
    watermark = math.ceil(watermark * 1000) / 1000
    why["watermark"] = "a block more for each running request before a new one is let in"
    if found.layout.raised:
        why["block_size"] = f"{found.layout.block_size}: so that a page holds a state"
    else:
        why["block_size"] = "small blocks leave little of a request's last one empty"
    chosen = replace(
        wide,
        max_num_seqs=sequences,
        watermark=watermark,
        block_size=found.layout.block_size,
    )
    return Suggestion(chosen, budget(model, quantization, chosen, total_bytes), why)
