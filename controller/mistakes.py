"""A mistake in the configuration: where it is, what was seen there, what is wanted."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Mistake", "nearest", "place", "shown"]

SHOWN_CHARACTERS = 80


@dataclass(frozen=True, slots=True, order=True)
class Mistake:
    """One mistake.

    Attributes:
        place: dotted path in the file, such as ``engines[0].port``; empty for the whole file.
        problem: the rest of the line, starting with ``= SEEN: want ...`` or ``: ...``.
    """

    place: str
    problem: str

    def line(self, file: str) -> str:
        """Return ``FILE: PLACE PROBLEM`` as one line."""
        joint = "" if self.problem.startswith(":") or not self.place else " "
        where = f"{file}: {self.place}" if self.place else file
        return f"{where}{joint}{self.problem}"


def shown(value: object) -> str:
    """Return a value as it may appear in a message: short, on one line.

    Of a list or a mapping only its kind: it may hold an engine's variables, and they tokens.
    """
    if isinstance(value, dict | list):
        return f"a {'mapping' if isinstance(value, dict) else 'list'} of {len(value)}"
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 3]}..."


def place(path: Iterable[str | int]) -> str:
    """Return a path of keys and indexes as one reads it.

    >>> place(("engines", 0, "port"))
    'engines[0].port'
    """
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def nearest(key: str, known: Sequence[str]) -> str:
    """Return what to say of an unknown key: the nearest known one, and all of them."""
    close = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f": unknown key: {hint}want one of {', '.join(known)}"
