"""Families with a mixture of experts: Mixtral, Qwen MoE, gpt-oss, DeepSeek, Llama 4."""

from collections.abc import Callable
from dataclasses import replace

from vramscope.exporters.signals.memory.cache import AttentionCache
from vramscope.exporters.signals.memory.config_fields import ConfigFields
from vramscope.exporters.signals.memory.families.decoder import (
    Decoder,
    no_window,
    read_decoder,
    windows,
)
from vramscope.exporters.signals.memory.model import Layer, Model
from vramscope.exporters.signals.memory.parts import (
    experts,
    gated_mlp,
    latent_attention,
    norm,
)
from vramscope.exporters.signals.memory.tensor import Split, Tensor

__all__ = ["deepseek", "gpt_oss", "llama4", "mixtral", "qwen3_moe", "qwen_mlp"]

Tensors = tuple[Tensor, ...]


def mixtral(fields: ConfigFields, architecture: str) -> Model:
    """Mixtral: each MLP is a mixture."""
    decoder = read_decoder(fields)
    inner = fields.size("intermediate_size")
    active = fields.size("num_experts_per_tok")
    mlp = experts(decoder.hidden, inner, fields.size("num_local_experts"))
    tensors = (*decoder.attention(), *mlp, *_two_norms(decoder))
    layers = [Layer(tensors, decoder.cache(window)) for window in windows(fields, decoder.layers)]
    return decoder.model(architecture, layers, active * inner)


def qwen3_moe(fields: ConfigFields, architecture: str) -> Model:
    """Qwen3 MoE: normalised heads; a mixture in all layers but those that are named."""
    decoder = read_decoder(fields)
    no_window(fields)
    bias = fields.flag("attention_bias", default=False)
    attention = decoder.attention(qkv_bias=bias, output_bias=bias, qk_norm=True)
    mlp, inner = qwen_mlp(fields, decoder)
    layers = [
        Layer((*attention, *mlp(layer), *_two_norms(decoder)), decoder.cache())
        for layer in range(decoder.layers)
    ]
    return decoder.model(architecture, layers, inner)


def qwen_mlp(fields: ConfigFields, decoder: Decoder) -> tuple[Callable[[int], Tensors], int]:
    """Return what gives the MLP of a layer, and the widest of them."""
    inner = fields.size("moe_intermediate_size")
    active = fields.size("num_experts_per_tok") * inner
    mixture = experts(decoder.hidden, inner, fields.size("num_experts", "num_local_experts"))
    shared = fields.count("shared_expert_intermediate_size", default=0)
    if shared:
        mixture += (
            *gated_mlp(decoder.hidden, shared, name="mlp.shared_expert"),
            Tensor("mlp.shared_expert_gate.weight", (1, decoder.hidden)),
        )
    plain_size = fields.size("intermediate_size", default=inner)
    plain = gated_mlp(decoder.hidden, plain_size)
    step = fields.size("decoder_sparse_step", default=1)
    named = fields.list_of(int, "mlp_only_layers") or []

    def mlp(layer: int) -> Tensors:
        return mixture if (layer + 1) % step == 0 and layer not in named else plain

    return mlp, max(active + shared, plain_size if named or step > 1 else 0)


def gpt_oss(fields: ConfigFields, architecture: str) -> Model:
    """gpt-oss: biases everywhere, a sink a head, every second layer with a window."""
    decoder = read_decoder(fields)
    inner = fields.size("intermediate_size")
    active = fields.size("num_experts_per_tok", "experts_per_token")
    mixture = experts(
        decoder.hidden, inner, fields.size("num_local_experts", "num_experts"), bias=True
    )
    bias = fields.flag("attention_bias", default=True)
    sinks = Tensor("sinks", (decoder.heads,), Split(0, decoder.heads, "num_attention_heads"))
    tensors = (
        *decoder.attention(qkv_bias=bias, output_bias=bias),
        sinks,
        *mixture,
        *_two_norms(decoder),
    )
    layers = [
        Layer(tensors, decoder.cache(window))
        for window in windows(fields, decoder.layers, pattern=2)
    ]
    return decoder.model(architecture, layers, active * inner)


def deepseek(fields: ConfigFields, architecture: str) -> Model:
    """DeepSeek V2 and V3: latent attention, the first layers with a plain MLP."""
    latent = fields.size("kv_lora_rank")
    if fields.flag("attention_bias", default=False):
        raise fields.error("attention_bias", True, "false: biases of MLA are not known here")
    nope, rope = fields.size("qk_nope_head_dim"), fields.size("qk_rope_head_dim")
    value = fields.size("v_head_dim")
    decoder = replace(read_decoder(fields), kv_heads=1)
    attention = latent_attention(
        decoder.hidden,
        decoder.heads,
        fields.optional_size("q_lora_rank"),
        latent,
        nope,
        rope,
        value,
    )
    cache = AttentionCache(1, latent + rope, 0, latent=True)
    dense_size = fields.size("intermediate_size")
    inner = fields.size("moe_intermediate_size", default=dense_size)
    count = fields.count("n_routed_experts", default=0)
    dense = gated_mlp(decoder.hidden, dense_size)
    mixture: Tensors = experts(decoder.hidden, inner, count) if count else dense
    corrected = "noaux_tc" if architecture == "DeepseekV3ForCausalLM" else "greedy"
    if count and fields.text("topk_method", default=corrected) == "noaux_tc":
        mixture += (Tensor("mlp.router.e_score_correction_bias", (count,), bits=32),)
    shared = fields.count("n_shared_experts", default=0) * inner
    if count and shared:
        mixture += gated_mlp(decoder.hidden, shared, name="mlp.shared_experts")
    first = fields.count("first_k_dense_replace", default=0)
    step = fields.size("moe_layer_freq", default=1)
    layers = [
        Layer(
            (
                *attention,
                *(mixture if layer >= first and layer % step == 0 else dense),
                *_two_norms(decoder),
            ),
            cache,
        )
        for layer in range(decoder.layers)
    ]
    active = fields.size("num_experts_per_tok", default=1) * inner + shared
    return decoder.model(architecture, layers, max(dense_size, active))


def llama4(fields: ConfigFields, architecture: str) -> Model:
    """Llama 4: most layers attend within a chunk, a shared expert beside each mixture."""
    decoder = read_decoder(fields)
    inner = fields.size("intermediate_size")
    plain_size = fields.size("intermediate_size_mlp", default=inner)
    active = fields.size("num_experts_per_tok", default=1)
    count = fields.size("num_local_experts")
    mixture = (
        *experts(decoder.hidden, inner, count),
        *gated_mlp(decoder.hidden, inner, name="mlp.shared_expert"),
    )
    plain = gated_mlp(decoder.hidden, plain_size)
    step = fields.size("interleave_moe_layer_step", default=1)
    chunk = fields.optional_size("attention_chunk_size")
    rope = fields.list_of(int, "no_rope_layers") or [
        int((layer + 1) % 4 != 0) for layer in range(decoder.layers)
    ]
    if len(rope) != decoder.layers:
        raise fields.error(
            "no_rope_layers", rope, f"one number for each of {decoder.layers} layers"
        )
    bias = fields.flag("attention_bias", default=False)
    layers = [
        Layer(
            (
                *decoder.attention(qkv_bias=bias, output_bias=bias),
                *(mixture if (layer + 1) % step == 0 else plain),
                *_two_norms(decoder),
            ),
            decoder.cache(chunk=chunk if rope[layer] else None),
        )
        for layer in range(decoder.layers)
    ]
    return decoder.model(architecture, layers, max((active + 1) * inner, plain_size))


def _two_norms(decoder: Decoder) -> Tensors:
    return (
        *norm("input_layernorm", decoder.hidden),
        *norm("post_attention_layernorm", decoder.hidden),
    )
