from pathlib import Path

import pytest

from vramscope.exporters.catalog import METRICS, Metric
from vramscope.exporters.catalog.docs import metrics_page
from vramscope.exporters.catalog.lora import LORA_LOAD_SECONDS
from vramscope.exporters.engine.probe.adapters import LOAD_BOUNDS_S

DOCS = Path(__file__).parents[3] / "docs"


def test_docs_are_what_the_catalog_says() -> None:
    assert (DOCS / "metrics.md").read_text() == metrics_page(), "run: make docs"


def test_each_name_is_born_once() -> None:
    names = [metric.name for metric in METRICS]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_units_are_base_units_and_in_the_name(metric: Metric) -> None:
    assert metric.unit not in ("percent", "ms", "milliseconds", "MiB", "KB")
    if metric.unit in ("seconds", "bytes", "ratio"):
        stem = metric.name.removesuffix("_total")
        assert stem.endswith(f"_{metric.unit}")


def test_probe_counts_loads_in_the_catalogs_buckets() -> None:
    assert LORA_LOAD_SECONDS.buckets == LOAD_BOUNDS_S


@pytest.mark.parametrize(
    ("name", "kind", "text", "buckets", "complaint"),
    [
        ("kv_blocks", "gauge", "Blocks.", (), "prefix"),
        ("vramscope_kv_blocks", "counter", "Blocks.", (), "ends in _total"),
        ("vramscope_kv_total", "gauge", "Blocks.", (), "ends in _total"),
        ("vramscope_kv_seconds", "histogram", "Time.", (), "has buckets"),
        ("vramscope_kv_blocks", "gauge", "Blocks", (), "full stop"),
    ],
)
def test_wrong_metric_cannot_be_made(
    name: str, kind: str, text: str, buckets: tuple[float, ...], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        Metric(name, kind, "blocks", text, (), buckets)  # type: ignore[arg-type]
