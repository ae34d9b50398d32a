"""One refresh's page, made once in each form that somebody asks for."""

import gzip
from concurrent.futures import ThreadPoolExecutor

from prometheus_client import CollectorRegistry, generate_latest

from vramscope.exporters.catalog import Metric
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.exposition.rendered import WANTED_FOR_S, Form, Format, Renderer

METRIC = Metric("vramscope_x_bytes", "gauge", "bytes", "X.")
ZIPPED = Form(Format.OPENMETRICS, gzipped=True)


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def families(value: float) -> Families:
    made = Families()
    made.add(METRIC, value)
    return made


def test_each_form_is_made_once_and_compresses_to_the_same() -> None:
    rendered = Renderer().render(families(1))
    plain = rendered.page(Form(Format.OPENMETRICS))
    with ThreadPoolExecutor(4) as pool:
        zipped = list(pool.map(rendered.page, [ZIPPED] * 8))
    assert all(page is zipped[0] for page in zipped)
    assert gzip.decompress(zipped[0]) == plain


def test_page_keeps_what_it_showed() -> None:
    renderer = Renderer()
    first = renderer.render(families(1))
    second = renderer.render(families(2))
    assert b"vramscope_x_bytes 1.0\n" in first.page()
    assert b"vramscope_x_bytes 2.0\n" in second.page()


def test_form_that_was_asked_for_is_ready_in_the_next_refreshes() -> None:
    clock = Clock()
    renderer = Renderer(clock)
    assert renderer.render(families(1)).ready(ZIPPED) is None
    clock.now_s = WANTED_FOR_S
    rendered = renderer.render(families(2))
    assert rendered._made.keys() == {ZIPPED, Form(Format.OPENMETRICS)}
    clock.now_s += 1
    assert not renderer.render(families(3))._made


def test_default_form_is_the_text_of_prometheus_client() -> None:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(families(1.5))
    assert Renderer().render(families(1.5)).page() == generate_latest(registry)
