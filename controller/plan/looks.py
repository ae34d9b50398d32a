"""The parts of a GPU's memory: what they are called, and how they look in a bar."""

from typing import NamedTuple

from vramscope.exporters.pictures.look import Hatch, Look

__all__ = ["PARTS", "PART_LOOKS", "Part"]


class Part(NamedTuple):
    """One part of the bar, in its order."""

    name: str
    title: str


PARTS = (
    Part("weights", "weights"),
    Part("lora_slots", "LoRA slots"),
    Part("activations", "activations (estimate)"),
    Part("graphs", "CUDA graphs (estimate)"),
    Part("context", "CUDA context, communication (estimate)"),
    Part("kv_pool", "KV pool"),
    Part("outside", "outside of gpu_memory_utilization"),
)

# Of Okabe and Ito's set; the character alone tells the parts apart too.
PART_LOOKS = {
    "weights": Look("#0072b2", "#0072b2", Hatch.NONE, 32, 32, "█", "W"),
    "lora_slots": Look("#f0e2a0", "#b38f00", Hatch.RISING, 178, 229, "▞", "L"),
    "activations": Look("#f3b48a", "#b34700", Hatch.CROSSED, 166, 216, "▚", "A"),
    "graphs": Look("#f3d3e3", "#b3568a", Hatch.DOTS, 169, 218, "░", "G"),
    "context": Look("#d9dde1", "#66727f", Hatch.RISING, 244, 252, "▒", "C"),
    "kv_pool": Look("#8fd6bd", "#009e73", Hatch.NONE, 36, 36, "▓", "K"),
    "outside": Look("#eef0f2", "#c3c9cf", Hatch.DOTS, 246, 254, "·", "."),
}
