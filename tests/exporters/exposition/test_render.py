"""Our bytes are prometheus_client's, whatever the labels and numbers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from vramscope.exporters.catalog import Metric
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.exposition.render import LineMaker, openmetrics_page, text_page

# No surrogates: prometheus_client can't encode them, and we show them as "?" (tested apart).
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["", '"', "\\", "\n", '\\"\n', "a,b={}", "GPU-1", "\u2028"]
)
NAMES = st.lists(
    st.sampled_from(["gpu", "uuid", "Z", "engine", "lee", "lea", "_x"]), unique=True, max_size=5
)
NUMBERS = st.floats() | st.integers(-(2**70), 2**70) | st.sampled_from([1e6, 999999.9, 1e15, 1e16])
BOUNDS = st.lists(st.floats(-10, 1e9), unique=True, max_size=5).map(sorted)


@st.composite
def metrics(draw: Any) -> Metric:
    kind = draw(st.sampled_from(["gauge", "counter", "histogram"]))
    unit = draw(st.sampled_from(["", "seconds", "bytes", "blocks"]))
    stem = "vramscope_" + draw(st.sampled_from(["a", "b", "c_seconds", "d_bytes"]))
    return Metric(
        stem + ("_total" if kind == "counter" else ""),
        kind,
        unit,
        draw(TEXTS) + ".",
        tuple(draw(NAMES)),
        (1.0,) if kind == "histogram" else (),
    )


@st.composite
def filled(draw: Any) -> Families:
    families = Families()
    # A family's name is given once, and a counter's may not be that of a gauge in OpenMetrics.
    for metric in draw(st.lists(metrics(), max_size=4, unique_by=lambda m: m.name)):
        for _ in range(draw(st.integers(0, 3))):
            labels = [draw(TEXTS) for _ in metric.labels]
            if metric.kind == "histogram":
                counts = {bound: draw(st.integers(0, 2**40)) for bound in draw(BOUNDS)}
                total = sum(counts.values()) + draw(st.integers(0, 9))
                families.add_histogram(metric, counts, total, draw(NUMBERS), *labels)
            else:
                families.add(metric, draw(NUMBERS | st.none()), *labels)
    return families


def registry(families: Families) -> CollectorRegistry:
    made = CollectorRegistry(auto_describe=False)
    made.register(families)
    return made


@given(st.lists(filled(), min_size=1, max_size=3))
def test_bytes_are_those_of_prometheus_client(refreshes: list[Families]) -> None:
    maker = LineMaker()
    for families in refreshes:  # what is remembered of one refresh must not show in the next
        lines = maker.lines(families)
        assert text_page(lines) == generate_latest(registry(families))
        assert openmetrics_page(lines) == generate_openmetrics(registry(families))  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.1, "0.1"),
        (3, "3.0"),
        (True, "1.0"),
        (-1e300, "-1e+300"),
        (999999.0, "999999.0"),
        (1000000, "1e+06"),
        (85899345920, "8.589934592e+10"),
        (float("inf"), "+Inf"),
        (float("-inf"), "-Inf"),
        (float("nan"), "NaN"),
    ],
)
def test_numbers_as_go_writes_them(value: float, shown: str) -> None:
    families = Families()
    families.add(Metric("vramscope_x", "gauge", "", "X."), value)
    assert (
        text_page(LineMaker().lines(families)).splitlines()[-1].decode() == f"vramscope_x {shown}"
    )


def test_empty_labels_are_left_out_and_the_others_are_in_order() -> None:
    families = Families()
    metric = Metric("vramscope_x", "gauge", "", "X.", ("uuid", "pod", "gpu"))
    families.add(metric, 1, "GPU-1", "", "0")
    families.add(metric, 2, "", "", "")
    lines = text_page(LineMaker().lines(families)).decode().splitlines()
    assert lines[2:] == ['vramscope_x{gpu="0",uuid="GPU-1"} 1.0', "vramscope_x 2.0"]


def test_label_that_is_no_text_costs_one_character_not_the_page() -> None:
    families = Families()
    families.add(
        Metric("vramscope_x", "gauge", "", "X.", ("file",)),
        1,
        b"a\xff".decode(errors="surrogateescape"),
    )
    assert b'{file="a?"} 1.0' in text_page(LineMaker().lines(families))


def test_openmetrics_page_is_one_a_parser_takes() -> None:
    families = Families()
    families.add(Metric("vramscope_x_bytes_total", "counter", "bytes", 'Say "x".'), 1)
    families.add_histogram(
        Metric("vramscope_y_seconds", "histogram", "seconds", "Y.", (), (0.1,)), {0.1: 1}, 3, 2.5
    )
    page = openmetrics_page(LineMaker().lines(families)).decode()
    counter, histogram = text_string_to_metric_families(page)  # type: ignore[no-untyped-call]
    assert (counter.name, counter.type, counter.unit) == ("vramscope_x_bytes", "counter", "bytes")
    assert counter.documentation == 'Say "x".'
    assert [sample.value for sample in histogram.samples] == [1, 3, 3, 2.5]


def test_series_that_left_are_forgotten() -> None:
    maker = LineMaker()
    metric = Metric("vramscope_x", "gauge", "", "X.", ("pod",))
    for pod in range(50):
        families = Families()
        families.add(metric, 1, str(pod))
        maker.lines(families)
    assert [known.labels for known in maker._known.values()] == [[("49",)]]
