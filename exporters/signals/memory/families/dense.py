"""Families whose layers are attention and one MLP: Llama and its kin, Gemma, Falcon, OPT, GPT-2."""

from dataclasses import replace

from vramscope.exporters.signals.memory.config_fields import ConfigFields
from vramscope.exporters.signals.memory.families.decoder import no_window, read_decoder, windows
from vramscope.exporters.signals.memory.model import Layer, Model
from vramscope.exporters.signals.memory.parts import gated_mlp, norm, plain_mlp
from vramscope.exporters.signals.memory.tensor import Tensor

__all__ = ["falcon", "gemma2", "gemma3", "gpt2", "llama", "opt", "qwen2", "qwen3"]


def llama(fields: ConfigFields, architecture: str) -> Model:
    """Llama, Mistral, Phi-3, Granite: two norms, gated MLP."""
    bias = fields.flag("attention_bias", "bias", default=False)
    return _llama_like(fields, architecture, qkv_bias=bias, output_bias=bias)


def qwen2(fields: ConfigFields, architecture: str) -> Model:
    """Qwen2: queries, keys and values have a bias."""
    no_window(fields)
    return _llama_like(fields, architecture, qkv_bias=True, windowed=False)


def qwen3(fields: ConfigFields, architecture: str) -> Model:
    """Qwen3: queries and keys are normalised by head."""
    no_window(fields)
    bias = fields.flag("attention_bias", default=False)
    return _llama_like(
        fields, architecture, qkv_bias=bias, output_bias=bias, qk_norm=True, windowed=False
    )


def gemma2(fields: ConfigFields, architecture: str) -> Model:
    """Gemma 2: four norms, every second layer with a window."""
    return _gemma(fields, architecture, pattern=2, qk_norm=False)


def gemma3(fields: ConfigFields, architecture: str) -> Model:
    """Gemma 3: four norms and normalised heads, five of six layers with a window."""
    pattern = fields.size("sliding_window_pattern", default=6)
    return _gemma(fields, architecture, pattern=pattern, qk_norm=True)


def falcon(fields: ConfigFields, architecture: str) -> Model:
    """Falcon: multi-query attention beside the MLP; the newer ones have grouped queries."""
    newer = fields.flag("new_decoder_architecture", default=False)
    one_head = fields.flag("multi_query", default=True) and not newer
    decoder = read_decoder(fields, tied=True)
    if one_head:
        decoder = replace(decoder, kv_heads=1)
    bias = fields.flag("bias", default=False)
    parallel = fields.flag("parallel_attn", default=True)
    inner = fields.size("ffn_hidden_size", default=4 * decoder.hidden)
    norms = fields.size("num_ln_in_parallel_attn", default=2 if newer else 1)
    if not parallel:
        norms = 2
    layer = Layer(
        (
            *decoder.attention(qkv_bias=bias, output_bias=bias),
            *plain_mlp(decoder.hidden, inner, bias=bias),
            *(t for n in range(norms) for t in norm(f"norm{n}", decoder.hidden, bias=True)),
        ),
        decoder.cache(),
    )
    return decoder.model(
        architecture,
        [layer] * decoder.layers,
        inner,
        last=norm("ln_f", decoder.hidden, bias=True),
    )


def opt(fields: ConfigFields, architecture: str) -> Model:
    """OPT: learned positions, biases everywhere."""
    decoder = read_decoder(fields, tied=True)
    if fields.size("word_embed_proj_dim", default=decoder.hidden) != decoder.hidden:
        raise fields.error("word_embed_proj_dim", "another size", f"hidden_size {decoder.hidden}")
    bias = fields.flag("enable_bias", default=True)
    inner = fields.size("ffn_dim")
    scaled = fields.flag("layer_norm_elementwise_affine", default=True)
    # One whose norms come after, as in OPT-350M, has none at the end.
    ends = fields.flag("do_layer_norm_before", default=True)
    ends = ends and not fields.flag("_remove_final_layer_norm", default=False)
    layer = Layer(
        (
            *decoder.attention(qkv_bias=bias, output_bias=bias),
            *plain_mlp(decoder.hidden, inner, bias=bias),
            *(norm("self_attn_layer_norm", decoder.hidden, bias=True) if scaled else ()),
            *(norm("final_layer_norm", decoder.hidden, bias=True) if scaled else ()),
        ),
        decoder.cache(),
    )
    positions = (Tensor("embed_positions.weight", (decoder.max_length + 2, decoder.hidden)),)
    return decoder.model(
        architecture,
        [layer] * decoder.layers,
        inner,
        last=norm("final_layer_norm", decoder.hidden, bias=True) if scaled and ends else (),
        before=positions,
    )


def gpt2(fields: ConfigFields, architecture: str) -> Model:
    """GPT-2: learned positions, biases everywhere."""
    decoder = read_decoder(fields, tied=True)
    inner = fields.size("n_inner", default=4 * decoder.hidden)
    layer = Layer(
        (
            *decoder.attention(qkv_bias=True, output_bias=True),
            *plain_mlp(decoder.hidden, inner, bias=True),
            *norm("ln_1", decoder.hidden, bias=True),
            *norm("ln_2", decoder.hidden, bias=True),
        ),
        decoder.cache(),
    )
    return decoder.model(
        architecture,
        [layer] * decoder.layers,
        inner,
        last=norm("ln_f", decoder.hidden, bias=True),
        before=(Tensor("wpe.weight", (decoder.max_length, decoder.hidden)),),
    )


def _llama_like(
    fields: ConfigFields,
    architecture: str,
    *,
    qkv_bias: bool = False,
    output_bias: bool = False,
    qk_norm: bool = False,
    windowed: bool = True,
) -> Model:
    decoder = read_decoder(fields)
    inner = fields.size("intermediate_size")
    tensors = (
        *decoder.attention(qkv_bias=qkv_bias, output_bias=output_bias, qk_norm=qk_norm),
        *gated_mlp(decoder.hidden, inner, bias=fields.flag("mlp_bias", default=False)),
        *norm("input_layernorm", decoder.hidden),
        *norm("post_attention_layernorm", decoder.hidden),
    )
    found = windows(fields, decoder.layers) if windowed else [None] * decoder.layers
    layers = [Layer(tensors, decoder.cache(window)) for window in found]
    return decoder.model(architecture, layers, inner)


def _gemma(fields: ConfigFields, architecture: str, *, pattern: int, qk_norm: bool) -> Model:
    decoder = read_decoder(fields, tied=True)
    inner = fields.size("intermediate_size")
    bias = fields.flag("attention_bias", default=False)
    names = ("input", "post_attention", "pre_feedforward", "post_feedforward")
    tensors = (
        *decoder.attention(qkv_bias=bias, output_bias=bias, qk_norm=qk_norm),
        *gated_mlp(decoder.hidden, inner),
        *(t for name in names for t in norm(f"{name}_layernorm", decoder.hidden)),
    )
    layers = [
        Layer(tensors, decoder.cache(window))
        for window in windows(fields, decoder.layers, pattern=pattern)
    ]
    return decoder.model(architecture, layers, inner)
