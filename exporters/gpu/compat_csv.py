"""dcgm-exporter's counters file: which fields, as which type, with which help."""

import csv
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, cast, get_args

from vramscope.exporters.errors import VramscopeError
from vramscope.exporters.gpu.dcgm_names import FIELD_IDS

__all__ = ["Counters", "CountersFileError", "Kind", "Row", "parse_counters", "read_counters"]

Kind = Literal["gauge", "counter", "histogram", "summary", "label"]

NOT_OF_A_GPU = re.compile(
    r"DCGM_EXP_\w+|DCGM_FI_DEV_(CPU|CONNECTX|NVSWITCH|SYSIO|MODULE)_\w+|DCGM_FI_IMEX_\w+"
)
"""What dcgm-exporter makes itself, and fields of entities that are not read."""


class CountersFileError(VramscopeError):
    """A counters file has mistakes; the message has one line for each."""


class Row(NamedTuple):
    """One line of the file."""

    name: str
    field_id: int
    kind: Kind
    help: str


@dataclass(frozen=True, slots=True)
class Counters:
    """What a file asks for.

    Attributes:
        rows: in order.
        left_out: names that dcgm-exporter knows and that are not exposed here.
    """

    rows: tuple[Row, ...]
    left_out: tuple[str, ...] = ()

    @property
    def field_ids(self) -> frozenset[int]:
        """What a DCGM source has to read."""
        return frozenset(row.field_id for row in self.rows)


def read_counters(path: Path) -> Counters:
    """Read a counters file.

    Raises:
        CountersFileError: it can't be read, or has mistakes: all of them, by line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CountersFileError(f"{path}: {error}") from error
    return parse_counters(text, str(path))


def parse_counters(text: str, where: str) -> Counters:
    """Return what a counters file asks for.

    A row is ``FIELD, type, help``; blank lines and lines that begin with ``#`` are comments.

    Args:
        text: of the file.
        where: its name, for messages.

    Raises:
        CountersFileError: it has mistakes: all of them, by line.
    """
    mistakes: list[str] = []
    rows: dict[str, Row] = {}
    left_out: list[str] = []
    lines: dict[str, int] = {}
    for number, cells in _lines(text):
        name = cells[0]
        if name in lines:
            mistakes.append(f"{where}:{number}: {name}: it is in line {lines[name]} already")
            continue
        if problem := _problem(cells):
            mistakes.append(f"{where}:{number}: {problem}")
            continue
        lines[name] = number
        if name in FIELD_IDS:
            kind = cast("Kind", cells[1].lower())
            rows[name] = Row(name, FIELD_IDS[name], kind, ", ".join(cells[2:]))
        else:
            left_out.append(name)
    if not lines and not mistakes:
        mistakes.append(f"{where}: no row: want lines of FIELD, type, help")
    if mistakes:
        raise CountersFileError("\n".join(mistakes))
    return Counters(tuple(rows.values()), tuple(left_out))


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            (cells,) = csv.reader([line], skipinitialspace=True)
            yield number, [cell.strip() for cell in cells]


def _problem(cells: list[str]) -> str:
    """Return what is wrong with a row, empty when nothing is."""
    name = cells[0]
    if len(cells) < 3:
        return f"{','.join(cells)!r}: want FIELD, type, help"
    if name not in FIELD_IDS and not NOT_OF_A_GPU.fullmatch(name):
        near = difflib.get_close_matches(name.upper(), FIELD_IDS, n=1)
        return f"{name}: no such field" + (f": did you mean {near[0]}?" if near else "")
    if cells[1].lower() not in get_args(Kind):
        return f"{name}: type {cells[1]!r}: want one of {', '.join(get_args(Kind))}"
    if not any(cells[2:]):
        return f"{name}: its help is empty"
    return ""
