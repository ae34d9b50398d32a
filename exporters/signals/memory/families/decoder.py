"""What all families read from a config alike, and the frame of a decoder-only model."""

from collections.abc import Sequence
from dataclasses import dataclass

from vramscope.exporters.signals.memory.cache import AttentionCache
from vramscope.exporters.signals.memory.config_fields import ConfigFields
from vramscope.exporters.signals.memory.model import Layer, Model
from vramscope.exporters.signals.memory.parts import attention, embedding, norm
from vramscope.exporters.signals.memory.tensor import Tensor

__all__ = ["Decoder", "layer_kinds", "no_window", "read_decoder", "windows"]

BITS = {"bfloat16": 16, "float16": 16, "float32": 32}


@dataclass(frozen=True, slots=True)
class Decoder:
    """The dimensions that nearly every config has.

    Attributes:
        fields: the config they are from.
        hidden: elements of a token.
        layers: how many.
        heads: query heads.
        kv_heads: heads of keys and values.
        head_size: elements of a head.
        vocabulary: tokens.
        max_length: tokens of a sequence.
        element_bits: of a weight.
        tied: input and output embedding are one.
    """

    fields: ConfigFields
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    max_length: int
    element_bits: int
    tied: bool

    def attention(
        self,
        *,
        qkv_bias: bool = False,
        output_bias: bool = False,
        qk_norm: bool = False,
        gate: bool = False,
    ) -> tuple[Tensor, ...]:
        """Return the tensors of grouped-query attention; see ``parts.attention``."""
        return attention(
            self.hidden,
            self.heads,
            self.kv_heads,
            self.head_size,
            qkv_bias=qkv_bias,
            output_bias=output_bias,
            qk_norm=qk_norm,
            gate=gate,
        )

    def cache(self, window: int | None = None, chunk: int | None = None) -> AttentionCache:
        """Return the keys and values of one layer."""
        return AttentionCache(self.kv_heads, self.head_size, self.head_size, window, chunk)

    def model(
        self,
        architecture: str,
        layers: Sequence[Layer],
        intermediate: int,
        *,
        last: tuple[Tensor, ...] | None = None,
        before: tuple[Tensor, ...] = (),
        head_bias: bool = False,
    ) -> Model:
        """Return the whole: an embedding, the layers, a norm, the output projection.

        Args:
            architecture: vLLM's name.
            layers: in order.
            intermediate: widest of an MLP.
            last: in place of the norm after the layers.
            before: more before the layers.
            head_bias: the output projection has a bias.
        """
        after = norm("norm", self.hidden) if last is None else last
        if not self.tied:
            after += embedding("lm_head", self.vocabulary, self.hidden)
        if head_bias:
            after += (Tensor("lm_head.bias", (self.vocabulary,), after[-1].split),)
        return Model(
            architecture=architecture,
            hidden_size=self.hidden,
            intermediate_size=intermediate,
            vocabulary=self.vocabulary,
            max_length=self.max_length,
            checkpoint_bits=self.element_bits,
            element_bits=self.element_bits,
            heads=self.heads,
            embedding=(*embedding("embed_tokens", self.vocabulary, self.hidden), *before),
            layers=tuple(layers),
            last=after,
            tied=self.tied,
        )


def read_decoder(fields: ConfigFields, *, tied: bool = False, attention: bool = True) -> Decoder:
    """Read the dimensions.

    Args:
        fields: of the language model.
        tied: what the family does where the config does not say.
        attention: whether there are heads.

    Raises:
        ModelConfigError: one is missing or wrong.
    """
    hidden = fields.size("hidden_size", "n_embd", "d_model")
    layers = fields.layers("num_hidden_layers", "n_layer", "n_layers")
    heads = kv_heads = head_size = 0
    if attention:
        heads = fields.size("num_attention_heads", "n_head", "n_heads")
        kv_heads = fields.size("num_key_value_heads", "num_kv_heads", default=heads)
        if heads % kv_heads:
            raise fields.error("num_key_value_heads", kv_heads, f"a divisor of the {heads} heads")
        head_size = fields.optional_size("head_dim", "attention_head_dim") or 0
        if not head_size:
            if hidden % heads:
                raise fields.error("num_attention_heads", heads, f"a divisor of {hidden}")
            head_size = hidden // heads
    return Decoder(
        fields=fields,
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        vocabulary=fields.size("vocab_size"),
        max_length=fields.size(
            "max_position_embeddings", "n_positions", "max_sequence_length", default=2048
        ),
        element_bits=_element_bits(fields),
        tied=fields.flag("tie_word_embeddings", default=tied),
    )


def windows(fields: ConfigFields, layers: int, *, pattern: int | None = None) -> list[int | None]:
    """Return each layer's window.

    Args:
        fields: of the language model.
        layers: how many.
        pattern: every so many layers one attends to all tokens, where ``layer_types`` does not
            say; None: a window is of all layers.

    Raises:
        ModelConfigError: ``layer_types`` is not one known kind a layer.
    """
    window = fields.optional_size("sliding_window")
    kinds = layer_kinds(fields, layers, "sliding_attention", "full_attention")
    if kinds is None:
        if pattern is None or window is None:
            return [window] * layers
        return [None if (layer + 1) % pattern == 0 else window for layer in range(layers)]
    if "sliding_attention" in kinds and window is None:
        raise fields.missing(["sliding_window"])
    return [window if kind == "sliding_attention" else None for kind in kinds]


def layer_kinds(fields: ConfigFields, layers: int, *known: str) -> list[str] | None:
    """Return ``layer_types``, or None where the config has none.

    Raises:
        ModelConfigError: it is not one known kind a layer.
    """
    kinds = fields.list_of(str, "layer_types")
    if kinds is None:
        return None
    if len(kinds) != layers:
        raise fields.error("layer_types", f"{len(kinds)} kinds", f"one for each of {layers} layers")
    unknown = sorted({*kinds} - {*known})
    if unknown:
        raise fields.error("layer_types", unknown[0], " or ".join(known))
    return kinds


def no_window(fields: ConfigFields) -> None:
    """Refuse what vLLM refuses too: a window in some layers of a Qwen."""
    fields.optional_size("sliding_window")
    fields.count("max_window_layers", default=0)
    if fields.flag("use_sliding_window", default=False):
        raise fields.error("use_sliding_window", True, "false: windows of these are not known here")


def _element_bits(fields: ConfigFields) -> int:
    name = fields.text("torch_dtype", "dtype", default="bfloat16")
    if name not in BITS:
        raise fields.error("torch_dtype", name, f"one of {', '.join(BITS)}")
    return BITS[name]
