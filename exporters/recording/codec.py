"""Frozen values as plain JSON trees and back, by the annotations of their classes.

What can be in a recording is what a ``Refresh`` can hold: its class, and every dataclass and
named tuple that annotations lead to. Nothing else is ever made from a file, and each value is
checked against its annotation, so that a wrong file is an error here and not in a formula.
"""

import enum
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from vramscope.exporters.errors import VramscopeError
from vramscope.exporters.refresh import Refresh

__all__ = ["CodecError", "Decoder", "Schema", "Tree", "encode", "known_types", "own_schema"]

Tree = Any
"""What JSON holds."""
Schema = Mapping[str, list[str]]
"""Field names by the name of their class, in the order of the values."""

Decode = Callable[[Tree], Any]


class CodecError(VramscopeError):
    """A value is not what its class says. The message names the class and field."""


def encode(value: Any) -> Tree:
    """Return a tree of lists, dicts, strings, numbers, booleans and None.

    A class is the list of its fields' values; a mapping is an object if its keys are strings,
    else a list of pairs.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return str(value)  # a StrEnum is its value
    if is_dataclass(value):
        return [encode(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {str(key): encode(item) for key, item in value.items()}
        return [[encode(key), encode(item)] for key, item in value.items()]
    if isinstance(value, frozenset):
        return sorted(encode(item) for item in value)
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    raise CodecError(f"{type(value).__name__} can't be recorded")


def known_types(root: type = Refresh) -> dict[str, type]:
    """Return the classes that a recording may hold, by name."""
    found: dict[str, type] = {}
    waiting: list[Any] = [root]
    while waiting:
        hint = waiting.pop()
        if _is_record(hint):
            if found.setdefault(hint.__name__, hint) is not hint:
                raise TypeError(f"two classes {hint.__name__} in a {root.__name__}")
            waiting += [each for each in _hints(hint).values() if each not in found.values()]
        else:
            waiting += get_args(hint)
    return dict(sorted(found.items()))


def own_schema() -> Schema:
    """Return the schema of what ``encode`` makes now."""
    return {name: list(_hints(known)) for name, known in known_types().items()}


class Decoder:
    """Makes the values of one recording.

    Args:
        schema: the recording's own: a field that it lacks gets its default.
        root: what its trees are.
    """

    def __init__(self, schema: Schema, root: type = Refresh) -> None:
        self._schema = schema
        self._known: dict[Any, Decode] = {}
        self._root = self._decode_of(root, root.__name__)

    def decode(self, tree: Tree) -> Any:
        """Return the value.

        Raises:
            CodecError: the tree is not of its class, or of one that is newer than this code.
        """
        return self._root(tree)

    def _decode_of(self, hint: Any, where: str) -> Decode:
        if _is_record(hint):
            if hint not in self._known:
                self._known[hint] = lambda tree: self._known[hint](tree)  # of classes in a circle
                self._known[hint] = self._record(hint)
            return self._known[hint]
        origin, args = get_origin(hint), get_args(hint)
        if origin in (Union, types.UnionType):
            return self._union([arg for arg in args if arg is not type(None)], args, where)
        if origin is tuple:
            return self._tuple(args, where)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return self._mapping(args[0], args[1], where)
        if origin is frozenset:
            items = self._items(args[0], where)
            return lambda tree: frozenset(items(tree))
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return _checked(hint, where)
        if hint in PLAIN:
            return _plain(PLAIN[hint], hint.__name__, where)
        raise TypeError(f"{where}: {hint} can't be recorded: want one of {sorted(map(str, PLAIN))}")

    def _record(self, known: type) -> Decode:
        name = known.__name__
        hints, defaults = _hints(known), _defaults(known)
        written = self._schema.get(name)
        if written is None:
            # Of a class that came later; there can be no value of it.
            return _never(f"{name} is not in this recording's schema")
        for field in written:
            if field not in hints:
                return _never(f"{name}.{field} is not known here: made by a newer vramscope")
        missing = [field for field in hints if field not in written and field not in defaults]
        if missing:
            return _never(f"{name}: no {missing[0]}, and there is no default for it")
        decoders = [(field, self._decode_of(hints[field], f"{name}.{field}")) for field in written]

        def decode(tree: Tree) -> Any:
            if not isinstance(tree, list) or len(tree) != len(decoders):
                raise CodecError(f"{name}: {_seen(tree)}, want {len(decoders)} values")
            pairs = zip(decoders, tree, strict=True)
            return known(**{field: decode(item) for (field, decode), item in pairs})

        return decode

    def _union(self, some: list[Any], all_of: tuple[Any, ...], where: str) -> Decode:
        if len(some) == 1:
            decode = self._decode_of(some[0], where)
            return lambda tree: None if tree is None else decode(tree)
        if not all(hint in PLAIN for hint in some):
            raise TypeError(f"{where}: {some}: which of them a value is, could not be told")
        plain = _plain(tuple(t for hint in some for t in PLAIN[hint]), str(some), where)
        optional = type(None) in all_of
        return lambda tree: None if tree is None and optional else plain(tree)

    def _tuple(self, args: tuple[Any, ...], where: str) -> Decode:
        if len(args) == 2 and args[1] is Ellipsis:
            items = self._items(args[0], where)
            return lambda tree: tuple(items(tree))
        decoders = [self._decode_of(arg, where) for arg in args]

        def decode(tree: Tree) -> Any:
            if not isinstance(tree, list) or len(tree) != len(decoders):
                raise CodecError(f"{where}: {_seen(tree)}, want {len(decoders)} values")
            return tuple(one(item) for one, item in zip(decoders, tree, strict=True))

        return decode

    def _items(self, hint: Any, where: str) -> Callable[[Tree], list[Any]]:
        decode = self._decode_of(hint, where)

        def items(tree: Tree) -> list[Any]:
            if not isinstance(tree, list):
                raise CodecError(f"{where}: {_seen(tree)}, want a list")
            return [decode(item) for item in tree]

        return items

    def _mapping(self, key: Any, value: Any, where: str) -> Decode:
        keys, values = self._decode_of(key, where), self._decode_of(value, where)

        def decode(tree: Tree) -> Any:
            if isinstance(tree, dict):
                return {keys(name): values(item) for name, item in tree.items()}
            if not isinstance(tree, list) or any(
                not isinstance(pair, list) or len(pair) != 2 for pair in tree
            ):
                raise CodecError(f"{where}: {_seen(tree)}, want a mapping")
            return {keys(name): values(item) for name, item in tree}

        return decode


PLAIN: Mapping[Any, tuple[type, ...]] = {
    # A number is a number: what a source gives as 3 may be annotated as 3.0, and the reverse.
    bool: (bool,),
    int: (int, float),
    float: (int, float),
    str: (str,),
}


def _is_record(hint: Any) -> bool:
    if not isinstance(hint, type):
        return False
    return is_dataclass(hint) or (issubclass(hint, tuple) and hasattr(hint, "_fields"))


def _hints(known: type) -> dict[str, Any]:
    """Return the annotations of a class's fields, in order."""
    hints = get_type_hints(known)
    if is_dataclass(known):
        return {field.name: hints[field.name] for field in fields(known)}
    return {name: hints[name] for name in known._fields}  # type: ignore[attr-defined]


def _defaults(known: type) -> set[str]:
    if is_dataclass(known):
        return {
            field.name
            for field in fields(known)
            if field.default is not MISSING or field.default_factory is not MISSING
        }
    return set(known._field_defaults)  # type: ignore[attr-defined]


def _plain(kinds: tuple[type, ...], wanted: str, where: str) -> Decode:
    def decode(tree: Tree) -> Any:
        if not isinstance(tree, kinds):
            raise CodecError(f"{where}: {_seen(tree)}, want {wanted}")
        return tree

    return decode


def _checked(known: type[enum.Enum], where: str) -> Decode:
    def decode(tree: Tree) -> Any:
        try:
            return known(tree)
        except ValueError as error:
            wanted = "|".join(str(each.value) for each in known)
            raise CodecError(f"{where}: {_seen(tree)}, want {wanted}") from error

    return decode


def _never(why: str) -> Decode:
    def decode(_: Tree) -> Any:
        raise CodecError(why)

    return decode


def _seen(tree: Tree) -> str:
    text = repr(tree)
    return f"got {text if len(text) <= 40 else text[:37] + '...'}"
