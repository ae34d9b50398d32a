"""Where a GPU's memory would go for a model: parts that sum to its total, and what fits in."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from vramscope.exporters.signals.memory.block_layout import BlockLayout, block_layout
from vramscope.exporters.signals.memory.estimates import (
    Estimate,
    activation_bytes,
    context_bytes,
    graph_bytes,
)
from vramscope.exporters.signals.memory.lora import slot_bytes
from vramscope.exporters.signals.memory.model import Model
from vramscope.exporters.signals.memory.quantization import Quantization
from vramscope.exporters.signals.memory.weights import (
    Parallelism,
    rank_weight_bytes,
    stage_layers,
)

__all__ = ["Budget", "EngineShape", "budget"]


@dataclass(frozen=True, slots=True)
class EngineShape:
    """How an engine is to be run: vLLM's options that memory hangs on, under vLLM's names.

    Attributes:
        gpu_memory_utilization: share of the GPU's total that the engine may take.
        block_size: token slots a block.
        max_num_seqs: sequences in a step.
        max_num_batched_tokens: tokens in a step.
        max_loras: adapter slots; 0 without LoRA.
        max_lora_rank: of an adapter.
        kv_element_bytes: of a key or value; None for the model's own.
        enforce_eager: no CUDA graphs.
        watermark: share of the blocks that new requests may not take (vLLM's ``watermark``).
    """

    parallelism: Parallelism = field(default_factory=Parallelism)
    gpu_memory_utilization: float = 0.92
    block_size: int = 16
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    max_loras: int = 0
    max_lora_rank: int = 16
    kv_element_bytes: int | None = None
    enforce_eager: bool = False
    watermark: float = 0.0


@dataclass(frozen=True, slots=True)
class Budget:
    """One GPU's memory, of the rank that has the least room.

    Attributes:
        total_bytes: of the GPU.
        parts: bytes by part: ``weights``, ``lora_slots``, ``activations``, ``graphs``, ``context``,
            ``kv_pool``, ``outside`` (what the engine may not take). They sum to the total, and
            ``kv_pool`` is negative where the rest does not fit.
        estimates: the parts that are estimated, with range and source.
        layout: of the pool; None where nothing is kept of a request.
        blocks: that fit, the null block not counted.
        stage: the pipeline stage that it is of.
    """

    total_bytes: int
    parts: Mapping[str, int]
    estimates: Mapping[str, Estimate]
    layout: BlockLayout | None
    blocks: int
    stage: int

    @property
    def fits(self) -> bool:
        """Whether there is a block for anything."""
        return self.parts["kv_pool"] >= 0 and (self.layout is None or self.blocks > 0)

    def requests(self, tokens: int, watermark: float = 0.0) -> int:
        """Return how many requests of ``tokens`` fit at once."""
        if self.layout is None or not self.fits:
            return 0
        each = self.layout.request_blocks(tokens)
        usable = self.blocks - int(self.blocks * watermark)
        return usable // each if each else 0

    def tokens(self, longest: int) -> int:
        """Return the tokens of as many requests of length ``longest`` as fit, and of one more.

        With full attention that is all blocks' slots; windows and states make it depend on length.
        """
        if self.layout is None or not self.fits:
            return 0
        whole = self.requests(longest)
        left = self.blocks - whole * self.layout.request_blocks(longest)
        low, high = 0, longest
        while low < high:
            middle = (low + high + 1) // 2
            if self.layout.request_blocks(middle) <= left:
                low = middle
            else:
                high = middle - 1
        return whole * longest + low


def budget(
    model: Model,
    quantization: Quantization | None,
    shape: EngineShape,
    total_bytes: int,
    measured: Mapping[str, int] | None = None,
) -> Budget:
    """Return the budget of one GPU; of all pipeline stages, of the one with the fewest blocks.

    Args:
        model: to be served.
        quantization: of its matrices.
        shape: of the engine.
        total_bytes: of the GPU, as its driver says.
        measured: bytes by part, in place of what is computed or estimated.

    Raises:
        LayoutError: the model can't be spread so.
        LayoutUnknownError: its pages don't go together in a way that is known here.
    """
    stages = range(shape.parallelism.pipeline)
    return min(
        (
            _stage(model, quantization, shape, total_bytes, measured or {}, stage)
            for stage in stages
        ),
        key=lambda one: (one.blocks, one.parts["kv_pool"]),
    )


def _stage(
    model: Model,
    quantization: Quantization | None,
    shape: EngineShape,
    total_bytes: int,
    measured: Mapping[str, int],
    stage: int,
) -> Budget:
    spread = shape.parallelism
    estimates = {
        "activations": activation_bytes(
            model, shape.max_num_batched_tokens, shape.max_num_seqs, spread.tensor
        ),
        "graphs": graph_bytes(eager=shape.enforce_eager),
        "context": context_bytes(spread.tensor),
    }
    layers = stage_layers(len(model.layers), spread.pipeline)[stage]
    slots = 0
    if shape.max_loras:
        slot = slot_bytes(model, shape.max_lora_rank, spread.tensor, stage=layers)
        slots = shape.max_loras * slot
    parts = {
        "weights": rank_weight_bytes(model, quantization, spread, stage),
        "lora_slots": slots,
        **{name: estimate.bytes for name, estimate in estimates.items()},
    }
    parts |= {name: size for name, size in measured.items() if name in parts}
    allowed = int(total_bytes * shape.gpu_memory_utilization)
    pool = allowed - sum(parts.values())
    element = model.element_bits // 8
    layout = block_layout(
        [layer.cache for layer in model.layers],
        shape.block_size,
        spread.tensor,
        shape.kv_element_bytes or element,
        element,
        layers,
    )
    blocks = 0
    if layout is not None and pool > 0:
        blocks = max(0, pool // layout.block_bytes - 1)  # one is vLLM's null block
    return Budget(
        total_bytes=total_bytes,
        parts={**parts, "kv_pool": pool, "outside": total_bytes - allowed},
        estimates={name: one for name, one in estimates.items() if name not in measured},
        layout=layout,
        blocks=blocks,
        stage=stage,
    )
