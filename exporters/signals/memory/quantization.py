"""How a checkpoint's matrices are quantised, and what one takes then."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from vramscope.exporters.signals.memory.config_fields import ConfigFields

__all__ = ["METHODS", "Quantization", "read_quantization"]

METHODS = ("fp8", "int8", "awq", "gptq", "int4", "mxfp4")
SCALE_BITS = 32
MXFP4_GROUP = 32
MXFP4_PADDING = 64
OF_COMPRESSED_TENSORS = (3, 3)
"""A scale and a zero point each for queries, keys and values."""
PREFIX = re.compile(r"^(model\.|language_model\.|backbone\.|transformer\.)+")


@dataclass(frozen=True)
class Quantization:
    """One scheme for the matrices of a model.

    Attributes:
        method: of ``METHODS``; ``int4`` is packed as compressed-tensors does.
        bits: of an element.
        group: inputs that share a scale, for 4 bits; None for one scale a row.
        block: (outputs, inputs) that share a scale, for FP8; None for one scale a matrix or row.
        by_row: one scale a row, where there is no group and no block.
        static_inputs: a scale for what comes in is stored too.
        zero_points: groups have one.
        order: inputs carry the number of their group (GPTQ's ``desc_act``).
        attention_scales: elements that each attention layer has for its queries, keys and values:
            in 32 bits, and in the model's own precision.
        ignored: modules that stay as they are: names, with ``*``, or ``re:`` and an expression.
    """

    method: str
    bits: int
    group: int | None = None
    block: tuple[int, int] | None = None
    by_row: bool = False
    static_inputs: bool = False
    zero_points: bool = False
    order: bool = False
    attention_scales: tuple[int, int] = (0, 0)
    ignored: tuple[str, ...] = ()

    def covers(self, module: str) -> bool:
        """Return whether a module is quantised.

        Args:
            module: such as ``layers.3.self_attn.q_proj``.
        """
        if self.method == "mxfp4":
            return ".experts." in module
        # Expressions hold from the start of the whole name, as in vLLM.
        return not any(pattern.match(f"model.{module}") for pattern in self._patterns)

    @cached_property
    def _patterns(self) -> list[re.Pattern[str]]:
        found = []
        for name in self.ignored:
            if name.startswith("re:"):
                found.append(re.compile(name.removeprefix("re:")))
            else:
                bare = re.escape(PREFIX.sub("", name)).replace(r"\*", "[^.]+")
                found.append(re.compile(rf"(.*\.)?{bare}(\.|$)"))
        return found

    def rank_size(self, size: int) -> int:
        """Return what a rank holds of an expert's inner size: MXFP4 pads it for its kernels.

        To 64 here, as vLLM 0.32 does on a CPU; kernels of some GPUs want 128 or 256.
        """
        if self.method != "mxfp4":
            return size
        return -(-size // MXFP4_PADDING) * MXFP4_PADDING

    def attention_bytes(self, element_bits: int) -> int:
        """Return bytes of ``attention_scales`` of one layer."""
        full, own = self.attention_scales
        return (full * SCALE_BITS + own * element_bits) // 8

    def matrix_bytes(self, outputs: int, inputs: int, element_bits: int) -> int:
        """Return bytes of a matrix and of what it is scaled with.

        Args:
            outputs: rows that a rank holds.
            inputs: columns that a rank holds.
            element_bits: of the model's own precision, in which some scales are.
        """
        bits = outputs * inputs * self.bits
        if self.group is not None:
            groups = -(-inputs // self.group)
            scale_bits = 8 if self.method == "mxfp4" else element_bits
            bits += groups * outputs * scale_bits
            if self.zero_points:
                bits += groups * outputs * self.bits
            if self.order:
                bits += inputs * 32
            if self.method == "int4":
                bits += 2 * 64  # the shape before packing
        elif self.block is not None:
            bits += -(-outputs // self.block[0]) * -(-inputs // self.block[1]) * SCALE_BITS
        else:
            bits += (outputs if self.by_row else 1) * SCALE_BITS
        if self.static_inputs:
            bits += SCALE_BITS
        return -(-bits // 8)


def read_quantization(fields: ConfigFields) -> Quantization:
    """Read the ``quantization_config`` of a config.json.

    Raises:
        ModelConfigError: a method, or a variant of one, that is not known here.
    """
    method = fields.text("quant_method")
    ignored = _ignored(fields)
    if method == "fp8":
        block = fields.list_of(int, "weight_block_size")
        if block is not None and (len(block) != 2 or min(block) < 1):
            raise fields.error("weight_block_size", block, "two whole numbers from 1 on")
        return Quantization(
            "fp8",
            8,
            block=None if block is None else (block[0], block[1]),
            static_inputs=fields.text("activation_scheme", default="dynamic") == "static",
            attention_scales=(0, 4),
            ignored=ignored,
        )
    if method in ("awq", "gptq"):
        order = fields.flag("desc_act", default=False)
        bits = fields.size("bits", "w_bit")
        group = fields.size("group_size", "q_group_size")
        if bits not in (4, 8):
            raise fields.error("bits", bits, "4 or 8")
        return Quantization(
            method, bits, group=group, zero_points=True, order=order, ignored=ignored
        )
    if method == "mxfp4":
        return Quantization("mxfp4", 4, group=MXFP4_GROUP, ignored=ignored)
    if method == "compressed-tensors":
        return _compressed_tensors(fields, ignored)
    raise fields.error(
        "quant_method", method, "one known here: fp8, awq, gptq, mxfp4, compressed-tensors"
    )


def _ignored(fields: ConfigFields) -> tuple[str, ...]:
    names = ("ignore", "modules_to_not_convert", "ignored_layers")
    found = tuple(fields.list_of(str, *names) or ())
    for name in found:
        if name.startswith("re:"):
            try:
                re.compile(name.removeprefix("re:"))
            except (re.error, OverflowError, RecursionError) as error:
                wanted = f"a regular expression after re: ({error})"
                raise fields.error(names[0], name, wanted) from error
    return found


def _compressed_tensors(fields: ConfigFields, ignored: Sequence[str]) -> Quantization:
    groups = fields.inner("config_groups")
    first = None if groups is None else groups.inner("group_0")
    weights = None if first is None else first.inner("weights")
    if groups is None or first is None or weights is None:
        raise fields.missing(["config_groups.group_0.weights"])
    if next((name for name in groups.not_asked()), "group_0.").partition(".")[0] != "group_0":
        raise fields.error("config_groups", "several groups", "one: more are not known here")
    targets = first.list_of(str, "targets") or ["Linear"]
    if targets != ["Linear"]:
        raise first.error("targets", targets, "['Linear']: some matrices only are not known here")
    bits = weights.size("num_bits")
    kind = weights.text("type")
    strategy = weights.text("strategy")
    inputs = first.inner("input_activations")
    static = inputs is not None and not inputs.flag("dynamic", default=False)
    if kind == "float" and bits == 8 and strategy in ("tensor", "channel"):
        return Quantization(
            "fp8",
            8,
            by_row=strategy == "channel",
            static_inputs=static,
            attention_scales=OF_COMPRESSED_TENSORS,
            ignored=tuple(ignored),
        )
    if kind == "int" and bits == 8 and strategy == "channel" and inputs is not None:
        return Quantization(
            "int8",
            8,
            by_row=True,
            static_inputs=static,
            attention_scales=OF_COMPRESSED_TENSORS,
            ignored=tuple(ignored),
        )
    if kind == "int" and bits == 4 and strategy == "group" and inputs is None:
        return Quantization(
            "int4",
            4,
            group=weights.size("group_size"),
            zero_points=not weights.flag("symmetric", default=True),
            attention_scales=OF_COMPRESSED_TENSORS,
            ignored=tuple(ignored),
        )
    raise fields.error(
        "config_groups",
        f"{bits}-bit {kind} by {strategy}",
        "8-bit float by tensor or channel, 8-bit int by channel, or 4-bit int by group",
    )
