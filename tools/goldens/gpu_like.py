"""Lets vLLM's CPU build decide as on a GPU where the memory arithmetic would see the difference.

The CPU platform wants blocks of 32 tokens, keeps some mamba states in float32 because its kernels
do, and refuses some quantisations for want of kernels. None of that is so on the GPUs whose memory
is planned, and some of it depends on the machine's instruction set. Nothing runs here: only
shapes and data types are asked for.
"""

from typing import Any

import torch
from vllm.model_executor.kernels.linear.scaled_mm.cpu import CPUFp8BlockScaledMMKernel
from vllm.model_executor.layers.fused_moe.modular_kernel import FusedMoEExperts
from vllm.platforms import current_platform

__all__ = ["ATTENTION_BACKEND", "EXPERTS_BACKEND", "MLA_BACKEND", "decide_as_on_a_gpu"]

ATTENTION_BACKEND = "vllm.v1.attention.backends.triton_attn.TritonAttentionBackend"
MLA_BACKEND = "vllm.v1.attention.backends.mla.triton_mla.TritonMLABackend"
"""Backends for any GPU, with blocks of 16 tokens. Others hold as many bytes a token."""

EXPERTS_BACKEND = "triton"
"""What vLLM picks for experts on Hopper. Blackwell's backends and Marlin pad mxfp4 to more."""


def decide_as_on_a_gpu() -> None:
    """Patch the platform of this process; call before a configuration is made."""

    def backend(_cls: Any, /, *_: Any, attn_selector_config: Any, **__: Any) -> str:
        return MLA_BACKEND if attn_selector_config.use_mla else ATTENTION_BACKEND

    torch.cpu._is_amx_tile_supported = lambda: False  # noqa: SLF001
    torch.cpu._is_avx512_bf16_supported = lambda: False  # noqa: SLF001
    type(current_platform).get_attn_backend_cls = classmethod(backend)
    CPUFp8BlockScaledMMKernel.is_supported = classmethod(lambda *_: (True, None))
    FusedMoEExperts.is_supported_config = staticmethod(lambda *_: (True, None))
