"""Models with an encoder for images: a tower beside the language model."""

from dataclasses import replace

from vramscope.exporters.signals.memory.config_fields import ConfigFields
from vramscope.exporters.signals.memory.families.dense import qwen2
from vramscope.exporters.signals.memory.model import Model
from vramscope.exporters.signals.memory.parts import gated_mlp, linear, norm
from vramscope.exporters.signals.memory.tensor import Split, Tensor, columns, heads, rows

__all__ = ["qwen25_vl"]

Tensors = tuple[Tensor, ...]


def qwen25_vl(fields: ConfigFields, architecture: str) -> Model:
    """Qwen2.5-VL: a tower of attention layers over patches, merged four to a token."""
    text = fields.inner("text_config") or fields
    model = qwen2(text, architecture)
    vision = fields.inner("vision_config")
    if vision is None:
        raise fields.missing(["vision_config"])
    return replace(model, towers=_tower(vision, model.hidden_size))


def _tower(fields: ConfigFields, text_hidden: int) -> Tensors:
    hidden = fields.size("hidden_size")
    head_count = fields.size("num_heads")
    inner = fields.size("intermediate_size")
    patch = fields.size("patch_size")
    channels = fields.size("in_channels", "in_chans", default=3)
    frames = fields.size("temporal_patch_size", default=2)
    merged = hidden * fields.size("spatial_merge_size", default=2) ** 2
    out = fields.size("out_hidden_size", default=text_hidden)
    by_head = heads(head_count, "num_heads")
    block = (
        *linear("attn.qkv", 3 * hidden, hidden, by_head, bias=True),
        *linear("attn.proj", hidden, hidden, Split(1, head_count, "num_heads"), bias=True),
        *gated_mlp(hidden, inner, bias=True),
        *norm("norm1", hidden),
        *norm("norm2", hidden),
    )
    what = "vision hidden size"
    return (
        Tensor("patch_embed.proj.weight", (hidden, channels, frames, patch, patch)),
        *(block * fields.layers("depth")),
        *norm("merger.ln_q", hidden),
        *linear("merger.mlp.0", merged, merged, rows(merged, what), bias=True),
        *linear("merger.mlp.2", out, merged, columns(merged, what), bias=True),
    )
