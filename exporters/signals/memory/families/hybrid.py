"""Families with states: Mamba, Mamba-2, Jamba, Nemotron-H, Qwen3-Next."""

from vramscope.exporters.signals.memory.config_fields import ConfigFields
from vramscope.exporters.signals.memory.families.decoder import (
    Decoder,
    layer_kinds,
    read_decoder,
)
from vramscope.exporters.signals.memory.families.mixture import qwen_mlp
from vramscope.exporters.signals.memory.model import Layer, Model
from vramscope.exporters.signals.memory.parts import experts, gated_mlp, norm, plain_mlp
from vramscope.exporters.signals.memory.recurrent import gated_delta_net, mamba1, mamba2
from vramscope.exporters.signals.memory.tensor import Tensor

__all__ = ["jamba", "mamba", "mamba_2", "nemotron_h", "qwen3_next"]

STATE_BITS = {"auto": None, "float32": 32, "bfloat16": 16, "float16": 16}


def mamba(fields: ConfigFields, architecture: str) -> Model:
    """Mamba and Falcon-Mamba: states only."""
    decoder = read_decoder(fields, tied=True, attention=False)
    expand = fields.size("expand", default=2)
    inner = fields.size("intermediate_size", default=expand * decoder.hidden)
    layer = mamba1(
        decoder.hidden,
        inner,
        fields.size("state_size"),
        fields.size("conv_kernel"),
        fields.size("time_step_rank", default=-(-decoder.hidden // 16)),
        bias=fields.flag("use_bias", default=False),
        conv_bias=fields.flag("use_conv_bias", default=True),
    )
    layer = _with_norms(layer, decoder, "norm")
    return decoder.model(architecture, [layer] * decoder.layers, inner)


def mamba_2(fields: ConfigFields, architecture: str) -> Model:
    """Mamba-2: states only."""
    decoder = read_decoder(fields, tied=False, attention=False)
    head_count, head_size = fields.size("num_heads"), fields.size("head_dim")
    inner = head_count * head_size
    layer = mamba2(
        decoder.hidden,
        inner,
        head_count,
        fields.size("n_groups"),
        fields.size("state_size"),
        fields.size("conv_kernel"),
        bias=fields.flag("use_bias", default=False),
        conv_bias=fields.flag("use_conv_bias", default=True),
    )
    layer = _with_norms(layer, decoder, "norm")
    return decoder.model(architecture, [layer] * decoder.layers, inner)


def jamba(fields: ConfigFields, architecture: str) -> Model:
    """Jamba: one layer of eight attends, the others are Mamba; every second MLP is a mixture."""
    decoder = read_decoder(fields)
    inner = fields.size("intermediate_size")
    expand = fields.size("mamba_expand", default=2)
    state_layer = mamba1(
        decoder.hidden,
        expand * decoder.hidden,
        fields.size("mamba_d_state"),
        fields.size("mamba_d_conv"),
        fields.size("mamba_dt_rank", default=-(-decoder.hidden // 16)),
        bias=fields.flag("mamba_proj_bias", default=False),
        conv_bias=fields.flag("mamba_conv_bias", default=True),
        norms=True,
    )
    attending = Layer(decoder.attention(), decoder.cache())
    count = fields.size("num_experts", default=1)
    active = fields.size("num_experts_per_tok", default=1)
    plain = gated_mlp(decoder.hidden, inner)
    mixture = experts(decoder.hidden, inner, count) if count > 1 else plain
    every, at = _period(fields, "expert_layer", 2, 1)
    attends_every, attends_at = _period(fields, "attn_layer", 8, 4)
    layers = []
    for layer in range(decoder.layers):
        core = attending if layer % attends_every == attends_at else state_layer
        mlp = mixture if layer % every == at else plain
        layers.append(
            _with_norms(
                Layer((*core.tensors, *mlp), core.cache),
                decoder,
                "input_layernorm",
                "pre_ff_layernorm",
            )
        )
    return decoder.model(architecture, layers, max(active, 1) * inner)


def nemotron_h(fields: ConfigFields, architecture: str) -> Model:
    """Nemotron-H: each layer is one of Mamba-2, attention or MLP, by a letter."""
    decoder = read_decoder(fields)
    inner = fields.size("intermediate_size")
    head_count, head_size = fields.size("mamba_num_heads"), fields.size("mamba_head_dim")
    state_layer = mamba2(
        decoder.hidden,
        head_count * head_size,
        head_count,
        fields.size("n_groups"),
        fields.size("ssm_state_size"),
        fields.size("conv_kernel"),
        bias=fields.flag("mamba_proj_bias", "use_bias", default=False),
        conv_bias=fields.flag("use_conv_bias", default=True),
        state_bits=_state_bits(fields, "mamba_ssm_cache_dtype", default="float32"),
    )
    bias = fields.flag("attention_bias", default=False)
    kinds = {
        "M": state_layer,
        "*": Layer(decoder.attention(qkv_bias=bias, output_bias=bias), decoder.cache()),
        "-": Layer(
            plain_mlp(decoder.hidden, inner, bias=fields.flag("mlp_bias", default=False)), None
        ),
    }
    pattern = fields.text("hybrid_override_pattern")
    if len(pattern) != decoder.layers or not {*pattern} <= {*kinds}:
        raise fields.error(
            "hybrid_override_pattern", pattern, f"{decoder.layers} letters of M, * and -"
        )
    layers = [_with_norms(kinds[letter], decoder, "norm") for letter in pattern]
    return decoder.model(architecture, layers, inner)


def qwen3_next(fields: ConfigFields, architecture: str) -> Model:
    """Qwen3-Next: one layer of four attends, with a gate; the others are gated delta nets."""
    decoder = read_decoder(fields)
    state_layer = gated_delta_net(
        decoder.hidden,
        fields.size("linear_num_key_heads"),
        fields.size("linear_key_head_dim"),
        fields.size("linear_num_value_heads"),
        fields.size("linear_value_head_dim"),
        fields.size("linear_conv_kernel_dim"),
    )
    bias = fields.flag("attention_bias", default=False)
    attending = Layer(
        decoder.attention(qkv_bias=bias, output_bias=bias, qk_norm=True, gate=True),
        decoder.cache(),
    )
    interval = fields.size("full_attention_interval", default=4)
    known = ("full_attention", "linear_attention")
    kinds = layer_kinds(fields, decoder.layers, *known) or [
        "full_attention" if (layer + 1) % interval == 0 else "linear_attention"
        for layer in range(decoder.layers)
    ]
    mlp, inner = qwen_mlp(fields, decoder)
    layers = []
    for layer, kind in enumerate(kinds):
        core = attending if kind == "full_attention" else state_layer
        whole = Layer((*core.tensors, *mlp(layer)), core.cache)
        layers.append(_with_norms(whole, decoder, "input_layernorm", "post_attention_layernorm"))
    return decoder.model(architecture, layers, inner)


def _with_norms(layer: Layer, decoder: Decoder, *names: str) -> Layer:
    norms: tuple[Tensor, ...] = tuple(t for name in names for t in norm(name, decoder.hidden))
    return Layer((*layer.tensors, *norms), layer.cache)


def _state_bits(fields: ConfigFields, name: str, *, default: str) -> int | None:
    """Return the precision of states that a config asks for; vLLM's ``auto`` takes it."""
    kind = fields.text(name, default=default)
    if kind not in STATE_BITS:
        raise fields.error(name, kind, f"one of {', '.join(STATE_BITS)}")
    return STATE_BITS[kind]


def _period(fields: ConfigFields, name: str, period: int, offset: int) -> tuple[int, int]:
    return (
        fields.size(f"{name}_period", default=period),
        fields.count(f"{name}_offset", default=offset),
    )
