"""A model's config.json, field by field: names what is missing, wrong, or not read."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vramscope.exporters.errors import VramscopeError

__all__ = ["ConfigFields", "ModelConfigError"]

MOST = 10**9
"""Of any dimension: what is over it is a mistake."""
MOST_LAYERS = 10_000
"""A list of them is made."""


class ModelConfigError(VramscopeError):
    """A config.json that the arithmetic can't be done for; names the field."""


class ConfigFields:
    """The fields of one object of a config.json, and which of them were asked for.

    A field has several names among models; the first that is there and not null counts.

    Args:
        values: the object.
        place: where it is, for messages: ``config.json`` or ``config.json: text_config``.
    """

    def __init__(self, values: Mapping[str, Any], place: str) -> None:
        self.place = place
        self._values = values
        self._asked: set[str] = set()
        self._inner: list[tuple[str, ConfigFields]] = []

    def size(self, *names: str, default: int | None = None) -> int:
        """Return a whole number from 1 on.

        Raises:
            ModelConfigError: it is missing and has no default, or is something else.
        """
        return self._whole(names, default, least=1)

    def count(self, *names: str, default: int | None = None) -> int:
        """Return a whole number from 0 on, as ``size`` does."""
        return self._whole(names, default, least=0)

    def layers(self, *names: str) -> int:
        """Return how many layers there are, as ``size`` does."""
        name, value = self._find(names)
        if value is None:
            raise self.missing(names)
        return self._checked(name, value, least=1, most=MOST_LAYERS)

    def optional_size(self, *names: str) -> int | None:
        """Return a whole number from 1 on, or None where it is missing or null."""
        name, value = self._find(names)
        return None if value is None else self._checked(name, value, least=1)

    def flag(self, *names: str, default: bool) -> bool:
        """Return true or false."""
        name, value = self._find(names)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(name, value, "true or false")
        return value

    def text(self, *names: str, default: str | None = None) -> str:
        """Return a text."""
        name, value = self._find(names)
        if value is None:
            if default is None:
                raise self.missing(names)
            return default
        if not isinstance(value, str):
            raise self.error(name, value, "a text")
        return value

    def list_of(self, kind: type, *names: str) -> list[Any] | None:
        """Return a list of one kind, or None where it is missing or null."""
        name, value = self._find(names)
        if value is None:
            return None
        if not isinstance(value, list) or not all(type(one) is kind for one in value):
            raise self.error(name, value, f"a list of {kind.__name__}")
        return value

    def inner(self, name: str) -> "ConfigFields | None":
        """Return the object under a name, or None where it is missing or null."""
        name, value = self._find((name,))
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.error(name, value, "an object")
        fields = ConfigFields(value, f"{self.place}: {name}")
        self._inner.append((name, fields))
        return fields

    def not_asked(self) -> Iterator[str]:
        """Yield the fields nobody asked for, those of inner objects by dotted path."""
        yield from (name for name in self._values if name not in self._asked)
        for name, fields in self._inner:
            yield from (f"{name}.{inner}" for inner in fields.not_asked())

    def error(self, name: str, seen: object, wanted: str) -> ModelConfigError:
        """Return the error for a field that is there and wrong."""
        shown = repr(seen)
        shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
        return ModelConfigError(f"{self.place}: {name} is {shown}: want {wanted}")

    def missing(self, names: Sequence[str]) -> ModelConfigError:
        """Return the error for a field that is not there."""
        also = f" (or {', '.join(names[1:])})" if len(names) > 1 else ""
        return ModelConfigError(f"{self.place}: no {names[0]}{also}: want it there")

    def _find(self, names: Sequence[str]) -> tuple[str, Any]:
        self._asked.update(names)
        for name in names:
            value = self._values.get(name)
            if value is not None:
                return name, value
        return names[0], None

    def _whole(self, names: Sequence[str], default: int | None, least: int) -> int:
        name, value = self._find(names)
        if value is None:
            if default is None:
                raise self.missing(names)
            return default
        return self._checked(name, value, least)

    def _checked(self, name: str, value: object, least: int, most: int = MOST) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.error(name, value, f"a whole number from {least} to {most:,}")
        return value
