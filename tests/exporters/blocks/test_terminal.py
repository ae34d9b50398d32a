"""The terminal's picture, by golden files and by what fits."""

import re
from collections.abc import Callable

import pytest

from vramscope.exporters.blocks import terminal
from vramscope.exporters.blocks.cells import Cell
from vramscope.exporters.blocks.glyphs import glyph
from vramscope.exporters.blocks.page_table import PageTable
from vramscope.exporters.pictures.style import Style

Make = Callable[..., PageTable]
Golden = Callable[[str, str], None]
PLAIN = Style(unicode=False, colour=False)
UNICODE = Style(unicode=True, colour=False)
COLOUR = Style(unicode=True, colour=True)
SHOW = {"block": terminal.by_block, "request": terminal.by_request}


@pytest.fixture
def small(make: Make) -> PageTable:
    return make(60, [70, 90, 40, 33], shared=2, held=2)


@pytest.mark.parametrize("by", SHOW)
@pytest.mark.parametrize(("style", "name"), [(PLAIN, "ascii"), (UNICODE, "unicode")])
def test_text(by: str, style: Style, name: str, small: PageTable, golden: Golden) -> None:
    golden(f"blocks/by_{by}.{name}.txt", SHOW[by](small, style, 100, 30, 0.42))


def test_ascii_is_ascii(small: PageTable) -> None:
    assert terminal.by_block(small, PLAIN, 100, 30, 0).isascii()
    assert terminal.by_request(small, PLAIN, 100, 30, 0).isascii()


@pytest.mark.parametrize("by", SHOW)
@pytest.mark.parametrize("columns", [60, 80, 100, 200])
@pytest.mark.parametrize("blocks", [60, 5000, 200_000])
def test_no_line_is_wider_than_the_terminal(make: Make, by: str, columns: int, blocks: int) -> None:
    tokens = [16 * (blocks // 20) - 5] * 10
    text = SHOW[by](make(blocks, tokens), COLOUR, columns, 30, 0)
    widths = [len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in text.splitlines()[1:]]
    assert max(widths) <= columns


def test_large_pool_fits_the_screen_and_says_what_a_cell_is(make: Make) -> None:
    text = terminal.by_block(make(100_000, [5000] * 20), UNICODE, 130, 40, 0)
    assert len(text.splitlines()) <= 40
    assert "a cell is 50 blocks" in text


def test_colours_end_where_they_begin(small: PageTable) -> None:
    for line in terminal.by_block(small, COLOUR, 130, 40, 0).splitlines():
        assert line.count("\x1b[38") == line.count("\x1b[0m")


def one(live: float, references: int = 1) -> Cell:
    return Cell(1, 1, live, 1 - live, 0, 0, 0, 0, int(references > 1), references)


@pytest.mark.parametrize(
    ("cell", "unicode", "ascii_"),
    [
        (one(1), "█", "#"),
        (one(0.5), "▄", "="),
        (one(0.01), "▁", "="),
        (one(0.99), "▇", "="),
        (one(0), "_", "_"),
        (one(1, references=3), "3", "3"),
        (one(1, references=10), "+", "+"),
        (Cell(1, 1, 0, 0, 1, 0, 0, 0, 0, 1), "▚", "x"),
        (Cell(1, 1, 0, 0, 0, 1, 0, 0, 0, 0), "░", "o"),
        (Cell(1, 1, 0, 0, 0, 0, 1, 0, 0, 0), "·", "."),
        (Cell(1, 1, 0, 0, 0, 0, 0, 1, 0, 0), " ", " "),
        (Cell(1, 9, 5, 0, 0, 4, 0, 0, 0, 1), "█", "#"),  # its largest part
        (Cell(1, 9, 4, 0, 0, 5, 0, 0, 0, 1), "░", "o"),
    ],
)
def test_character_of_a_cell(cell: Cell, unicode: str, ascii_: str) -> None:
    assert glyph(cell, UNICODE) == unicode
    assert glyph(cell, PLAIN) == ascii_


def test_mixed_cell_has_the_colours_of_its_two_largest_parts() -> None:
    mixed = Cell(1, 8, 2, 0, 1, 5, 0, 0, 0, 1)
    assert glyph(mixed, COLOUR) == "\x1b[38;5;32;48;5;158m▂\x1b[0m"


def test_mixed_cell_that_is_nearly_all_one_part_shows_that() -> None:
    assert glyph(Cell(1, 100, 1, 0, 0, 99, 0, 0, 0, 1), COLOUR) == "\x1b[38;5;36m░\x1b[0m"
