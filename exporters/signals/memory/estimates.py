"""What of an engine's memory can only be estimated before it runs, with ranges and sources."""

from dataclasses import dataclass

from vramscope.exporters.signals.memory.model import Model

__all__ = ["Estimate", "activation_bytes", "context_bytes", "graph_bytes"]

GIB = 1024**3
SAMPLER_COPIES = 10
LOGIT_BYTES = 4


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number that is not computed from shapes alone.

    Attributes:
        bytes: taken for the plan.
        low: it may be as little as this.
        high: and as much as this.
        source: where from.
    """

    bytes: int
    low: int
    high: int
    source: str


def activation_bytes(model: Model, step_tokens: int, sequences: int, tensor_ranks: int) -> Estimate:
    """Return the most that a step needs beside weights and KV pool.

    The larger of two moments. In a layer's MLP: the step's tokens with their residual, what goes
    in and out of the widest MLP. In the sampler: about ten copies of the logits in FP32, one row
    for each sequence, which tensor parallelism does not divide.

    Args:
        model: that runs.
        step_tokens: ``max_num_batched_tokens``.
        sequences: ``max_num_seqs``.
        tensor_ranks: of tensor parallelism.
    """
    element = max(2, model.element_bits // 8)
    inner = -(-model.intermediate_size // tensor_ranks)
    layer = step_tokens * (2 * model.hidden_size + 3 * inner) * element
    rows = min(sequences, step_tokens)
    sampler = SAMPLER_COPIES * rows * model.vocabulary * LOGIT_BYTES
    most = max(layer, sampler)
    return Estimate(
        most,
        most // 2,
        most * 2,
        "shapes of an MLP and of the sampler; ten copies of the logits are what Llama-3-8B's "
        "1.26 GiB at TP 1 and TP 2 come to (vLLM pull request 10511)",
    )


def context_bytes(tensor_ranks: int) -> Estimate:
    """Return what a process takes of a GPU outside PyTorch: CUDA context, NCCL, libraries."""
    if tensor_ranks == 1:
        return Estimate(
            GIB // 2,
            int(0.16 * GIB),
            int(1.79 * GIB),
            "vLLM's own start-up lines: 0.16 GiB (gateway-api-inference-extension pull request "
            "550), 1.79 GiB (vLLM pull request 10511)",
        )
    return Estimate(
        int(1.2 * GIB),
        int(0.33 * GIB),
        int(3.58 * GIB),
        "vLLM's own start-up lines at TP 2: 0.33 GiB (vLLM issue 14452), 3.58 GiB (vLLM pull "
        "request 10511)",
    )


def graph_bytes(*, eager: bool) -> Estimate:
    """Return what CUDA graphs take: 0 with ``enforce_eager``."""
    if eager:
        return Estimate(0, 0, 0, "enforce_eager")
    return Estimate(
        GIB // 2,
        int(0.1 * GIB),
        3 * GIB,
        "0.36 GiB for 16 captured sizes at TP 2 (gpustack/runner pull request 251); more sizes and "
        "larger models take more: measure with --engine",
    )
