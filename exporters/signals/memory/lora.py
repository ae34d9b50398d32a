"""Bytes of LoRA: of an adapter, and of the slots that an engine sets aside for them."""

from collections.abc import Collection

from vramscope.exporters.errors import VramscopeError
from vramscope.exporters.signals.memory.model import Model
from vramscope.exporters.signals.memory.tensor import Tensor

__all__ = ["NoAdaptersError", "adapter_bytes", "slot_bytes", "target_names"]

# vLLM's classes without SupportsLoRA.
WITHOUT_ADAPTERS = (
    "FalconForCausalLM",
    "FalconMambaForCausalLM",
    "GPT2LMHeadModel",
    "Mamba2ForCausalLM",
    "MambaForCausalLM",
)
# Those whose ``embedding_modules`` are not empty: embedding and output projection have slots too.
WITH_EMBEDDINGS = (
    "JambaForCausalLM",
    "Llama4ForCausalLM",
    "LlamaForCausalLM",
    "MixtralForCausalLM",
    "NemotronHForCausalLM",
    "Phi3ForCausalLM",
    "Qwen3ForCausalLM",
    "Qwen3MoeForCausalLM",
)
ALSO_LINEAR = ("router.weight", "shared_expert_gate.weight")


class NoAdaptersError(VramscopeError):
    """vLLM serves no adapters with this architecture."""


def target_names(model: Model) -> tuple[str, ...]:
    """Return the short names of the matrices that an adapter can change."""
    return tuple(
        dict.fromkeys(_short(t) for layer in model.layers for t in _matrices(layer.tensors))
    )


def adapter_bytes(
    model: Model, rank: int, targets: Collection[str] | None = None, element_bits: int | None = None
) -> int:
    """Return bytes of one adapter's file, or in CPU memory: two matrices for each target.

    Args:
        model: that it changes.
        rank: of the adapter.
        targets: short names; None for all of ``target_names``.
        element_bits: None for the model's own.

    Source:
        Hu et al., arXiv 2106.09685.
    """
    return _bytes(model, rank, targets, element_bits, 1, range(len(model.layers)))


def slot_bytes(
    model: Model,
    max_rank: int,
    tensor_ranks: int = 1,
    element_bits: int | None = None,
    stage: range | None = None,
) -> int:
    """Return bytes that one slot takes on a rank: vLLM sets it aside for all targets at once.

    The first matrix has a rank's share of the inputs where the target is split by them, else all
    of them; the second likewise of the outputs (without ``fully_sharded_loras``).

    Args:
        model: that is served.
        max_rank: ``max_lora_rank``.
        tensor_ranks: of tensor parallelism.
        element_bits: None for the model's own.
        stage: the layers of the rank's pipeline stage; None for all.

    Raises:
        LayoutError: the model can't be split so.
        NoAdaptersError: vLLM serves none with this architecture.

    Source:
        vLLM 0.32, vllm/lora/layers and each model's ``embedding_modules``.
    """
    if model.architecture in WITHOUT_ADAPTERS:
        raise NoAdaptersError(f"{model.architecture}: vLLM serves no LoRA adapters with it")
    every = range(len(model.layers))
    held = every if stage is None else stage
    slot = _bytes(model, max_rank, None, element_bits, tensor_ranks, held)
    if model.architecture in WITH_EMBEDDINGS:
        # Every rank of the first and last stage has all of the vocabulary here. A tied output
        # projection has no slot.
        tables = (held.start == 0) + (held.stop == every.stop and not model.tied)
        elements = tables * max_rank * (model.vocabulary + model.hidden_size)
        slot += elements * (element_bits or model.element_bits) // 8
    return slot


def _bytes(
    model: Model,
    rank: int,
    targets: Collection[str] | None,
    element_bits: int | None,
    tensor_ranks: int,
    layers: range,
) -> int:
    elements = 0
    for number in layers:
        for tensor in _matrices(model.layers[number].tensors):
            if targets is None or _short(tensor) in targets:
                outputs, inputs = tensor.rank_shape(tensor_ranks)
                elements += rank * (outputs + inputs) * tensor.copies
    return elements * (element_bits or model.element_bits) // 8


def _matrices(tensors: tuple[Tensor, ...]) -> list[Tensor]:
    return [one for one in tensors if one.linear or one.name.endswith(ALSO_LINEAR)]


def _short(tensor: Tensor) -> str:
    return tensor.name.removesuffix(".weight").rpartition(".")[2]
