"""Pictures: SVG by golden file and as XML, PNG by its pixels, both of one drawing."""

import io
import re
from collections.abc import Callable
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from PIL import Image

from vramscope.exporters.blocks import picture
from vramscope.exporters.blocks.page_table import Group, PageTable, Pool, Table
from vramscope.exporters.blocks.palette import LOOKS
from vramscope.exporters.pictures.drawing import Box, Drawing
from vramscope.exporters.pictures.png import SCALE, png
from vramscope.exporters.pictures.svg import svg

Make = Callable[..., PageTable]
Golden = Callable[[str, str], None]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def small(make: Make) -> PageTable:
    return make(60, [70, 90, 40, 33], shared=2, held=2)


@pytest.mark.parametrize("draw", [picture.by_block, picture.by_request])
def test_svg(draw: Callable[[PageTable], Drawing], small: PageTable, golden: Golden) -> None:
    golden(f"blocks/{draw.__name__}.svg", svg(draw(small)))


def test_svg_is_whole_in_itself(small: PageTable) -> None:
    text = svg(picture.by_block(small))
    root = ET.fromstring(text)  # noqa: S314  # made here
    patterns = {pattern.get("id") for pattern in root.iter(f"{SVG}pattern")}
    assert set(re.findall(r"url\(#(\w+)\)", text)) == patterns == {"slack", "held", "evictable"}
    assert "href" not in text
    assert "script" not in text


def test_names_from_outside_are_no_markup(small: PageTable) -> None:
    hostile = replace(small, engine="<script>&", model='"/><script>')
    root = ET.fromstring(svg(picture.by_block(hostile)))  # noqa: S314  # what it must survive
    assert list(root.iter(f"{SVG}script")) == []
    assert "Page table of <script>&" in {text.text for text in root.iter(f"{SVG}text")}


def test_each_block_is_a_cell_that_says_what_it_holds(small: PageTable) -> None:
    drawing = picture.by_block(small)
    told = [shape.title for shape in drawing.shapes if isinstance(shape, Box) and shape.title]
    numbers = {int(title.partition(":")[0]) for title in told if title[0].isdigit()}
    assert numbers == set(range(1, 61))
    assert any("live 0.4, slack 0.6" in title for title in told)


def test_every_part_has_a_look_of_its_own_without_colour() -> None:
    # Live and clean are plain, and as far apart in brightness as ink and paper.
    looks = [look.hatch for name, look in LOOKS.items() if name not in ("live", "clean")]
    assert len(set(looks)) == len(looks)
    assert len({look.character for look in LOOKS.values()}) == len(LOOKS)
    assert len({look.ascii for look in LOOKS.values()}) == len(LOOKS)


@pytest.mark.parametrize("blocks", [1, 400, 3180, 3181, 100_000, 1_000_000])
def test_any_pool_fits_the_map(make: Make, blocks: int) -> None:
    (pool,) = make(60, []).pools
    table = replace(make(60, []), pools=(replace(pool, blocks=pool.blocks[:1] * blocks),))
    drawing = picture.by_block(table)
    cells = [s for s in drawing.shapes if isinstance(s, Box) and s.x < picture.MARGIN + 830]
    assert 0 < len(cells) <= 3180
    assert max(cell.y + cell.height for cell in cells) <= drawing.height
    assert max(cell.x + cell.width for cell in cells) < picture.WIDTH - picture.SIDE


def test_many_requests_are_cut_with_their_number(make: Make) -> None:
    drawing = picture.by_request(make(2000, [100] * 50))
    words = [shape.text for shape in drawing.shapes if hasattr(shape, "text")]
    assert "and 20 more with 140 blocks" in words


def test_rows_say_their_group_where_there_are_several(small: PageTable) -> None:
    groups = (*small.groups, Group(0, "SlidingWindowSpec", 16, whole=False))
    tables = (*small.tables, Table(1, 0, 40, (None, None, small.tables[0].blocks[2])))
    drawing = picture.by_request(replace(small, groups=groups, tables=tables))
    words = [shape.text for shape in drawing.shapes if hasattr(shape, "text")]
    assert sum(text.startswith("group 1") for text in words) == 1
    titles = [shape.title for shape in drawing.shapes if isinstance(shape, Box)]
    assert "0: left the window 1" in titles


def test_pools_are_drawn_one_below_the_other(small: PageTable) -> None:
    two = replace(small, pools=(*small.pools, Pool(1, small.pools[0].blocks, 0)))
    words = [s.text for s in picture.by_block(two).shapes if hasattr(s, "text")]
    assert "Block pool 0: 60 blocks of 16 tokens" in words
    assert "Block pool 1" in words


def test_idle_engine_is_a_picture_too(make: Make) -> None:
    assert "No request holds a block." in svg(picture.by_request(make(60, [])))


def test_png_has_the_colours_of_its_cells(small: PageTable) -> None:
    drawing = picture.by_block(small)
    image = Image.open(io.BytesIO(png(drawing)))
    assert image.size == (drawing.width * SCALE, drawing.height * SCALE)
    cells = [s for s in drawing.shapes if isinstance(s, Box) and s.paint in ("live", "clean")]
    wide = [cell for cell in cells if cell.height > 10 and cell.width > 10]
    assert {cell.paint for cell in wide} == {"live", "clean"}
    for cell in wide:
        corner = image.getpixel(((round(cell.x) + 2) * SCALE, (round(cell.y) + 2) * SCALE))
        assert isinstance(corner, tuple)
        assert "#" + bytes(corner).hex() == LOOKS[cell.paint].fill


def test_png_shows_textures(small: PageTable) -> None:
    drawing = picture.by_block(small)
    image = Image.open(io.BytesIO(png(drawing)))
    for name in ("slack", "held", "evictable"):
        cell = max(
            (s for s in drawing.shapes if isinstance(s, Box) and s.paint == name),
            key=lambda box: box.width * box.height,
        )
        place = (cell.x, cell.y, cell.x + cell.width, cell.y + cell.height)
        area = image.crop(tuple(round(edge * SCALE) for edge in place))  # type: ignore[arg-type]
        colours = area.getcolors(1 << 16)
        assert colours is not None
        assert len(colours) > 1
