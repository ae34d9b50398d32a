"""The parts that layers of language models are made of: their tensors as checkpoints have them."""

from vramscope.exporters.signals.memory.tensor import (
    WHOLE,
    Split,
    Tensor,
    columns,
    heads,
    rows,
    vocabulary,
)

__all__ = [
    "attention",
    "embedding",
    "experts",
    "gated_mlp",
    "latent_attention",
    "linear",
    "norm",
    "plain_mlp",
]

Tensors = tuple[Tensor, ...]
HEADS = "num_attention_heads"


def linear(
    name: str, outputs: int, inputs: int, split: Split = WHOLE, *, bias: bool = False
) -> Tensors:
    """Return a matrix, and its bias. A rank that has a share of the inputs has the whole bias."""
    weight = Tensor(f"{name}.weight", (outputs, inputs), split, linear=True)
    if not bias:
        return (weight,)
    return weight, Tensor(f"{name}.bias", (outputs,), split if split.axis == 0 else WHOLE)


def norm(name: str, size: int, *, bias: bool = False) -> Tensors:
    """Return the scale of a normalisation, and its offset."""
    names = ("weight", "bias") if bias else ("weight",)
    return tuple(Tensor(f"{name}.{each}", (size,)) for each in names)


def embedding(name: str, size: int, hidden: int) -> Tensors:
    """Return a table by token, which ranks share by token."""
    return (Tensor(f"{name}.weight", (size, hidden), vocabulary(size)),)


def attention(
    hidden: int,
    query_heads: int,
    kv_heads: int,
    head_size: int,
    *,
    qkv_bias: bool = False,
    output_bias: bool = False,
    qk_norm: bool = False,
    gate: bool = False,
) -> Tensors:
    """Return the projections of grouped-query attention.

    Args:
        hidden: elements of a token.
        query_heads: heads of queries.
        kv_heads: heads of keys and values: as many in multi-head attention, one in multi-query.
        head_size: elements of a head.
        qkv_bias: whether queries, keys and values have a bias.
        output_bias: whether the output has one.
        qk_norm: queries and keys are normalised by head.
        gate: queries come with a gate of the same size.
    """
    queries = heads(query_heads, HEADS)
    shared = heads(kv_heads, "num_key_value_heads", replicate=True)
    query_size = query_heads * head_size
    found: Tensors = (
        *linear(
            "self_attn.q_proj", query_size * (2 if gate else 1), hidden, queries, bias=qkv_bias
        ),
        *linear("self_attn.k_proj", kv_heads * head_size, hidden, shared, bias=qkv_bias),
        *linear("self_attn.v_proj", kv_heads * head_size, hidden, shared, bias=qkv_bias),
        *linear(
            "self_attn.o_proj",
            hidden,
            query_size,
            Split(1, query_heads, HEADS),
            bias=output_bias,
        ),
    )
    if qk_norm:
        found += (*norm("self_attn.q_norm", head_size), *norm("self_attn.k_norm", head_size))
    return found


def latent_attention(
    hidden: int,
    query_heads: int,
    query_rank: int | None,
    latent: int,
    nope: int,
    rope: int,
    value: int,
) -> Tensors:
    """Return the projections of multi-head latent attention (MLA).

    Args:
        hidden: elements of a token.
        query_heads: heads.
        query_rank: of the queries' own latent; None where they have none.
        latent: elements of the latent of keys and values.
        nope: elements of a head's key without position.
        rope: elements of a key with position, shared by all heads.
        value: elements of a head's value.

    Source:
        DeepSeek-V2, arXiv 2405.04434, section 2.1.
    """
    by_head = heads(query_heads, HEADS)
    if query_rank is None:
        queries = linear("self_attn.q_proj", query_heads * (nope + rope), hidden, by_head)
    else:
        queries = (
            *linear("self_attn.q_a_proj", query_rank, hidden),
            *norm("self_attn.q_a_layernorm", query_rank),
            *linear("self_attn.q_b_proj", query_heads * (nope + rope), query_rank, by_head),
        )
    return (
        *queries,
        *linear("self_attn.kv_a_proj_with_mqa", latent + rope, hidden),
        *norm("self_attn.kv_a_layernorm", latent),
        *linear("self_attn.kv_b_proj", query_heads * (nope + value), latent, by_head),
        *linear(
            "self_attn.o_proj",
            hidden,
            query_heads * value,
            Split(1, query_heads, HEADS),
        ),
    )


def gated_mlp(hidden: int, inner: int, *, bias: bool = False, name: str = "mlp") -> Tensors:
    """Return gate, up and down projection."""
    what = "intermediate_size"
    return (
        *linear(f"{name}.gate_proj", inner, hidden, rows(inner, what), bias=bias),
        *linear(f"{name}.up_proj", inner, hidden, rows(inner, what), bias=bias),
        *linear(f"{name}.down_proj", hidden, inner, columns(inner, what), bias=bias),
    )


def plain_mlp(hidden: int, inner: int, *, bias: bool = False, name: str = "mlp") -> Tensors:
    """Return up and down projection."""
    what = "intermediate_size"
    return (
        *linear(f"{name}.up_proj", inner, hidden, rows(inner, what), bias=bias),
        *linear(f"{name}.down_proj", hidden, inner, columns(inner, what), bias=bias),
    )


def experts(hidden: int, inner: int, count: int, *, bias: bool = False) -> Tensors:
    """Return the gated MLPs of so many experts, and the router that chooses among them."""
    what = "moe_intermediate_size"
    split_rows, split_columns = rows(inner, what), columns(inner, what)

    def each(name: str, shape: tuple[int, ...], split: Split, *, matrix: bool = True) -> Tensor:
        return Tensor(
            f"mlp.experts.{name}", shape, split, linear=matrix, copies=count, experts=True
        )

    found: Tensors = (
        Tensor("mlp.router.weight", (count, hidden)),
        each("gate_proj.weight", (inner, hidden), split_rows),
        each("up_proj.weight", (inner, hidden), split_rows),
        each("down_proj.weight", (hidden, inner), split_columns),
    )
    if bias:
        found += (
            Tensor("mlp.router.bias", (count,)),
            each("gate_proj.bias", (inner,), split_rows, matrix=False),
            each("up_proj.bias", (inner,), split_rows, matrix=False),
            each("down_proj.bias", (hidden,), WHOLE, matrix=False),
        )
    return found
