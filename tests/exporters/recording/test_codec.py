"""Values to trees and back, and patches between trees."""

import enum
import json
import types
from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Union, get_args, get_origin

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from vramscope.exporters.recording.codec import (
    CodecError,
    Decoder,
    _hints,
    _is_record,
    encode,
    known_types,
    own_schema,
)
from vramscope.exporters.recording.patch import apply, difference
from vramscope.exporters.refresh import Refresh
from vramscope.exporters.signals import gpu as signals_module

PLAIN = {
    bool: st.booleans(),
    int: st.integers(-(2**63), 2**63),
    float: st.floats(allow_nan=False),
    str: st.text(max_size=5) | st.just("\udc80"),  # of a file name that is no UTF-8
}


def anything(hint: Any) -> st.SearchStrategy[Any]:
    """Return values of an annotation: of each field, with a default or without."""
    if hint in PLAIN:
        return PLAIN[hint]
    if _is_record(hint):
        made = {name: anything(inner) for name, inner in _hints(hint).items()}
        return st.builds(hint, **made)
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return st.one_of(*(st.none() if arg is type(None) else anything(arg) for arg in args))
    if origin is tuple and args[-1] is Ellipsis:
        return st.lists(anything(args[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(anything, args))
    if origin is frozenset:
        return st.frozensets(anything(args[0]), max_size=2)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return st.dictionaries(anything(args[0]), anything(args[1]), max_size=2)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return st.sampled_from(hint)
    raise AssertionError(f"no way to make a {hint}")


def through_json(tree: Any) -> Any:
    return json.loads(json.dumps(tree))


@pytest.mark.parametrize("name", known_types())
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_every_class_comes_back_as_it_was(name: str, data: st.DataObject) -> None:
    known = known_types()[name]
    value = data.draw(anything(known))
    tree = through_json(encode(value))
    back = Decoder(own_schema(), known).decode(tree)
    assert back == value
    assert json.dumps(encode(back)) == json.dumps(tree)  # 1, 1.0 and True are not the same


def test_what_signals_has_can_be_recorded() -> None:
    folder = Path(signals_module.__file__).parent
    found = set()
    for file in folder.glob("*.py"):
        module = import_module(f"vramscope.exporters.signals.{file.stem}")
        found |= {
            each.__name__
            for each in vars(module).values()
            if isinstance(each, type) and is_dataclass(each) and each.__module__ == module.__name__
        }
    assert {name for name in found if name.endswith(("Sample", "Reading"))} <= known_types().keys()


@dataclass(frozen=True)
class Inner:
    x: int


@dataclass(frozen=True)
class Old:
    a: int
    b: Inner | None = None


class Pair(NamedTuple):
    one: int
    two: str = "default"


@dataclass(frozen=True)
class New:
    a: int
    pair: Pair = field(default_factory=lambda: Pair(1))
    later: Mapping[tuple[str, int], float] = field(default_factory=dict)
    b: Inner | None = None


def test_field_that_an_older_file_lacks_has_its_default() -> None:
    schema = {"New": ["a", "b"], "Inner": ["x"]}
    assert Decoder(schema, New).decode([7, [3]]) == New(7, b=Inner(3))


def test_order_of_fields_is_the_files_own() -> None:
    schema = {"New": ["b", "a"], "Inner": ["x"]}
    assert Decoder(schema, New).decode([None, 7]) == New(7)


@pytest.mark.parametrize(
    ("schema", "tree", "complaint"),
    [
        ({"Old": ["a", "c"]}, [1, 2], "Old.c is not known here: made by a newer vramscope"),
        ({"Old": ["b"]}, [None], "Old: no a, and there is no default"),
        ({"Old": ["a", "b"]}, [1, [2]], "Inner is not in this recording's schema"),
        ({}, [1], "Old is not in this recording's schema"),
    ],
)
def test_schema_that_does_not_fit_is_an_error(
    schema: dict[str, list[str]], tree: Any, complaint: str
) -> None:
    with pytest.raises(CodecError, match=complaint):
        Decoder(schema, Old).decode(tree)


def test_class_of_another_schema_that_no_value_has_is_no_error() -> None:
    assert Decoder({"Old": ["a", "b"], "Else": ["y"]}, Old).decode([1, None]) == Old(1)


def test_value_without_annotation_to_read_it_by_is_refused() -> None:
    with pytest.raises(CodecError, match="object can't be recorded"):
        encode(object())


@pytest.mark.parametrize("hint", [object, Any, Inner | Old])
def test_annotation_that_does_not_tell_its_values_is_a_bug_here(hint: Any) -> None:
    @dataclass(frozen=True)
    class Vague:
        a: hint

    with pytest.raises(TypeError, match=r"Vague\.a"):
        Decoder({"Vague": ["a"], "Inner": ["x"], "Old": ["a", "b"]}, Vague)


SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, -0.0, 1.0, "", "x"])
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=12,
)


@given(TREES, TREES)
def test_patch_makes_the_new_of_the_old(old: Any, new: Any) -> None:
    patch = through_json(difference(old, new))
    before = json.dumps(old)
    assert json.dumps(apply(old, patch)) == json.dumps(new)
    assert json.dumps(old) == before


def test_patch_of_what_is_the_same_is_empty() -> None:
    assert difference([1, {"a": [2.0]}], [1, {"a": [2.0]}]) == []


def test_patch_keeps_the_order_of_keys() -> None:
    new = {"b": 1, "a": 2}
    assert list(apply({"a": 2, "b": 1}, difference({"a": 2, "b": 1}, new))) == ["b", "a"]


@settings(max_examples=30, deadline=None)
@given(st.lists(anything(Refresh), min_size=1, max_size=3))
def test_refreshes_come_back_through_patches(refreshes: list[Refresh]) -> None:
    decoder, tree, last = Decoder(own_schema()), None, None
    for refresh in refreshes:
        new = encode(refresh)
        tree = apply(tree, through_json(difference(last, new)))
        last = new
        assert decoder.decode(tree) == refresh
