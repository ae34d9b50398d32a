"""What each quantisation would buy."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vramscope.exporters.signals.memory.budget import EngineShape, budget
from vramscope.exporters.signals.memory.model import Model
from vramscope.exporters.signals.memory.quantization import Quantization

__all__ = ["Variant", "variants"]

WEIGHTS = {
    "fp8 weights": Quantization("fp8", 8, by_row=True),
    "int8 weights": Quantization("int8", 8, by_row=True),
    "int4 weights (AWQ, group 128)": Quantization("awq", 4, group=128, zero_points=True),
}
KV_BYTES = {"": None, ", fp8 KV": 1}


@dataclass(frozen=True, slots=True)
class Variant:
    """The same model in another precision.

    Attributes:
        name: what is changed.
        weight_bytes: on a GPU.
        kv_pool_bytes: on a GPU; negative where it does not fit.
        requests: by length, how many fit at once.
    """

    name: str
    weight_bytes: int
    kv_pool_bytes: int
    requests: dict[int, int]


def variants(
    model: Model,
    quantization: Quantization | None,
    shape: EngineShape,
    total_bytes: int,
    lengths: Sequence[int],
) -> list[Variant]:
    """Return the model as it is, then with less precise weights and KV.

    A model that is quantised already is shown with an FP8 KV cache only: its matrices can't be
    quantised again from what there is.

    Raises:
        LayoutError, LayoutUnknownError: as ``budget``.
    """
    kinds: dict[str, Quantization | None] = {"as it is": quantization}
    if quantization is None:
        kinds |= WEIGHTS
    found = []
    for name, kind in kinds.items():
        for more, element_bytes in KV_BYTES.items():
            wide = replace(shape, kv_element_bytes=element_bytes or shape.kv_element_bytes)
            one = budget(model, kind, wide, total_bytes)
            found.append(
                Variant(
                    name + more,
                    one.parts["weights"],
                    one.parts["kv_pool"],
                    {length: one.requests(length) for length in lengths},
                )
            )
    return found
