"""Layers with a state instead of keys and values: Mamba, Mamba-2, gated delta nets."""

from vramscope.exporters.signals.memory.cache import State, StateCache
from vramscope.exporters.signals.memory.model import Layer
from vramscope.exporters.signals.memory.parts import linear, norm
from vramscope.exporters.signals.memory.tensor import Split, Tensor, columns, rows

__all__ = ["gated_delta_net", "mamba1", "mamba2"]


def mamba1(
    hidden: int,
    inner: int,
    state: int,
    kernel: int,
    step_rank: int,
    *,
    bias: bool = False,
    conv_bias: bool = True,
    norms: bool = False,
    state_bits: int | None = None,
) -> Layer:
    """Return a Mamba layer without the norm before it.

    Args:
        hidden: elements of a token.
        inner: channels.
        state: elements of a channel's state.
        kernel: tokens of the convolution.
        step_rank: of the projection of the time step.
        bias: whether projections in and out have one.
        conv_bias: whether the convolution has one.
        norms: step, B and C are normalised (Jamba).
        state_bits: of an element of the state; None for the model's precision.

    Source:
        Gu and Dao, arXiv 2312.00752.
    """
    channels = rows(inner, "intermediate size")
    tensors = (
        *linear("mixer.in_proj", 2 * inner, hidden, channels, bias=bias),
        Tensor("mixer.conv1d.weight", (inner, 1, kernel), channels),
        *((Tensor("mixer.conv1d.bias", (inner,), channels),) if conv_bias else ()),
        *linear("mixer.x_proj", step_rank + 2 * state, inner, columns(inner, "intermediate size")),
        *linear("mixer.dt_proj", inner, step_rank, channels, bias=True),
        Tensor("mixer.A_log", (inner, state), channels, bits=32),
        Tensor("mixer.D", (inner,), channels),
        *linear("mixer.out_proj", hidden, inner, columns(inner, "intermediate size"), bias=bias),
    )
    if norms:
        tensors += (
            *norm("mixer.dt_layernorm", step_rank),
            *norm("mixer.b_layernorm", state),
            *norm("mixer.c_layernorm", state),
        )
    states = (State((inner, kernel - 1)), State((inner, state), state_bits))
    return Layer(tensors, StateCache(states, "mamba1"))


def mamba2(
    hidden: int,
    inner: int,
    head_count: int,
    groups: int,
    state: int,
    kernel: int,
    *,
    bias: bool = False,
    conv_bias: bool = True,
    state_bits: int | None = None,
) -> Layer:
    """Return a Mamba-2 layer without the norm before it.

    Args:
        hidden: elements of a token.
        inner: channels, of all heads.
        head_count: heads.
        groups: of B and C, shared by heads; ranks that get none of their own hold one too.
        state: elements of a channel's state.
        kernel: tokens of the convolution.
        bias: whether projections in and out have one.
        conv_bias: whether the convolution has one.
        state_bits: of an element of the state; None for the model's precision.

    Source:
        Dao and Gu, arXiv 2405.21060.
    """
    by_head = Split(0, head_count, "mamba heads")
    by_group = Split(0, groups, "n_groups", replicate=True)
    channels = Split(0, head_count, "mamba heads")
    shared = groups * state
    tensors = (
        *linear("mixer.in_proj.gate", inner, hidden, channels, bias=bias),
        *linear("mixer.in_proj.x", inner, hidden, channels, bias=bias),
        *linear("mixer.in_proj.B", shared, hidden, by_group, bias=bias),
        *linear("mixer.in_proj.C", shared, hidden, by_group, bias=bias),
        *linear("mixer.in_proj.dt", head_count, hidden, by_head, bias=bias),
        Tensor("mixer.conv1d.x.weight", (inner, 1, kernel), channels),
        Tensor("mixer.conv1d.B.weight", (shared, 1, kernel), by_group),
        Tensor("mixer.conv1d.C.weight", (shared, 1, kernel), by_group),
        Tensor("mixer.A_log", (head_count,), by_head, bits=32),
        Tensor("mixer.D", (head_count,), by_head),
        Tensor("mixer.dt_bias", (head_count,), by_head),
        Tensor("mixer.norm.weight", (inner,), channels),
        *linear("mixer.out_proj", hidden, inner, Split(1, head_count, "mamba heads"), bias=bias),
    )
    if conv_bias:
        tensors += (
            Tensor("mixer.conv1d.x.bias", (inner,), channels),
            Tensor("mixer.conv1d.B.bias", (shared,), by_group),
            Tensor("mixer.conv1d.C.bias", (shared,), by_group),
        )
    states = (
        State((inner, kernel - 1), units=head_count, what="mamba heads"),
        State((shared, kernel - 1), units=groups, what="n_groups", replicate=True),
        State((shared, kernel - 1), units=groups, what="n_groups", replicate=True),
        State((inner, state), state_bits, units=head_count, what="mamba heads"),
    )
    return Layer(tensors, StateCache(states, "mamba2"))


def gated_delta_net(
    hidden: int,
    key_heads: int,
    key_size: int,
    value_heads: int,
    value_size: int,
    kernel: int,
    *,
    state_bits: int | None = None,
) -> Layer:
    """Return a gated delta net layer (Qwen3-Next) without the norm before it.

    Args:
        hidden: elements of a token.
        key_heads: heads of keys, and of queries.
        key_size: elements of a key.
        value_heads: heads of values.
        value_size: elements of a value.
        kernel: tokens of the convolution.
        state_bits: of an element of the state; None for the model's precision.

    Source:
        Yang et al., arXiv 2412.06464.
    """
    by_key = Split(0, key_heads, "linear_num_key_heads")
    by_value = Split(0, value_heads, "linear_num_value_heads")
    keys, values = key_heads * key_size, value_heads * value_size
    tensors = (
        *linear("mixer.in_proj_qkvz", 2 * keys + 2 * values, hidden, by_key),
        *linear("mixer.in_proj_ba", 2 * value_heads, hidden, by_key),
        Tensor("mixer.conv1d.weight", (2 * keys + values, 1, kernel), by_key),
        Tensor("mixer.A_log", (value_heads,), by_value, bits=32),
        Tensor("mixer.dt_bias", (value_heads,), by_value),
        *norm("mixer.norm", value_size),
        *linear("mixer.out_proj", hidden, values, Split(1, value_heads, "linear_num_value_heads")),
    )
    states = (
        State((2 * keys + values, kernel - 1), units=key_heads, what="linear_num_key_heads"),
        State((value_heads, value_size, key_size), state_bits, what="linear_num_value_heads"),
    )
    return Layer(tensors, StateCache(states, "gated_delta_net"))
