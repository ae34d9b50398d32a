"""The architectures whose memory is known, by vLLM's name of them."""

from collections.abc import Callable, Mapping

from vramscope.exporters.signals.memory.config_fields import ConfigFields
from vramscope.exporters.signals.memory.families import dense, hybrid, mixture, vision
from vramscope.exporters.signals.memory.model import Model

__all__ = ["FAMILIES", "Family"]

Family = Callable[[ConfigFields, str], Model]

FAMILIES: Mapping[str, Family] = {
    "DeepseekV2ForCausalLM": mixture.deepseek,
    "DeepseekV3ForCausalLM": mixture.deepseek,
    "FalconForCausalLM": dense.falcon,
    "FalconMambaForCausalLM": hybrid.mamba,
    "GPT2LMHeadModel": dense.gpt2,
    "Gemma2ForCausalLM": dense.gemma2,
    "Gemma3ForCausalLM": dense.gemma3,
    "GptOssForCausalLM": mixture.gpt_oss,
    "JambaForCausalLM": hybrid.jamba,
    "Llama4ForCausalLM": mixture.llama4,
    "LlamaForCausalLM": dense.llama,
    "Mamba2ForCausalLM": hybrid.mamba_2,
    "MambaForCausalLM": hybrid.mamba,
    "MistralForCausalLM": dense.llama,
    "MixtralForCausalLM": mixture.mixtral,
    "NemotronHForCausalLM": hybrid.nemotron_h,
    "OPTForCausalLM": dense.opt,
    "Phi3ForCausalLM": dense.llama,
    "Qwen2ForCausalLM": dense.qwen2,
    "Qwen2_5_VLForConditionalGeneration": vision.qwen25_vl,
    "Qwen3ForCausalLM": dense.qwen3,
    "Qwen3MoeForCausalLM": mixture.qwen3_moe,
    "Qwen3NextForCausalLM": hybrid.qwen3_next,
}
