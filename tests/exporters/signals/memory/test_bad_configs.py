"""Whatever one writes into a field of a real config, the answer is a plan or one line of ours."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from vramscope.exporters.errors import VramscopeError
from vramscope.exporters.signals.memory.budget import EngineShape, budget
from vramscope.exporters.signals.memory.config_fields import ModelConfigError
from vramscope.exporters.signals.memory.lora import NoAdaptersError
from vramscope.exporters.signals.memory.read_model import read_model
from vramscope.exporters.signals.memory.tensor import LayoutError
from vramscope.exporters.signals.memory.weights import Parallelism, checkpoint_bytes

CONFIGS = {
    file.stem: json.loads(file.read_text())
    for file in sorted((Path(__file__).parent / "models").glob("*.json"))
}
MISSING = object()
BAD: tuple[Any, ...] = (
    *(MISSING, None, True, False),
    *(-1, 0, 1, 2, 3, 7, 10**9, 10**30, 1.5, float("inf"), float("nan")),
    *("", "8", "re:(", "re:a{99999999999}"),
    *([], [1], [10**30], ["a"], ["re:("], [[]], [None], {}, {"a": 1}),
)


def paths(values: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every field, of inner objects too."""
    for name, value in values.items():
        yield (*above, name)
        if isinstance(value, dict):
            yield from paths(value, (*above, name))


@st.composite
def spoilt(draw: Any) -> dict[str, Any]:
    """Draw a real config with one or two fields made something else."""
    config: dict[str, Any] = copy.deepcopy(CONFIGS[draw(st.sampled_from([*CONFIGS]))])
    for _ in range(draw(st.integers(1, 2))):
        *above, name = draw(st.sampled_from([*paths(config)]))
        inside = config
        for key in above:
            inside = inside[key]
        value = draw(st.sampled_from(BAD))
        if value is MISSING:
            del inside[name]
        else:
            inside[name] = copy.deepcopy(value)
    return config


def refusal(config: dict[str, Any], shape: EngineShape) -> VramscopeError | None:
    """Do all that a plan does with a config; return why that can't be, or None."""
    try:
        model, quantization = read_model(config, "m/config.json")
        found = budget(model, quantization, shape, 80 << 30)
    except VramscopeError as error:
        return error
    assert checkpoint_bytes(model, quantization) > 0
    assert found.requests(1000) * 1000 <= max(0, found.tokens(1000))
    return None


@settings(max_examples=400, deadline=None)
@given(
    spoilt(),
    st.sampled_from((1, 2, 3, 8)),
    st.sampled_from((1, 2, 5)),
    st.sampled_from((0, 2)),
)
def test_spoilt_config_is_planned_or_refused_in_one_line(
    config: dict[str, Any], tensor: int, pipeline: int, loras: int
) -> None:
    shape = EngineShape(parallelism=Parallelism(tensor, pipeline), max_loras=loras)
    error = refusal(config, shape)
    said = str(error)
    assert "\n" not in said
    if isinstance(error, ModelConfigError):
        assert said.startswith("m/config.json: ")
        assert ": want " in said
    elif isinstance(error, LayoutError):
        assert "can't be split over" in said or "keep nothing" in said
    else:
        assert error is None or isinstance(error, NoAdaptersError)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_json_for_the_quantisation_is_refused_in_one_line(value: Any) -> None:
    config = {**CONFIGS["llama3-8b"], "quantization_config": value}
    error = refusal(config, EngineShape())
    assert (error is None) == (value is None)
    assert error is None or str(error).startswith("m/config.json: ")
