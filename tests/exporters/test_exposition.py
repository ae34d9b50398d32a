"""The page, whole: what a Prometheus gets for engines in each state."""

from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from vramscope.exporters.catalog import METRICS
from vramscope.exporters.engine.host import HostRecords
from vramscope.exporters.exporter import Exporter

NOW_S = 1000.5


@pytest.fixture
def exporter(records: Any, monkeypatch: pytest.MonkeyPatch) -> Exporter:
    monkeypatch.setattr("vramscope.exporters.exporter.version", lambda _: "1.2.3")
    return Exporter(HostRecords(records.folder, lambda: NOW_S).read, clock=lambda: NOW_S)


def page(exporter: Exporter) -> str:
    exporter.refresh()
    exporter.refresh()  # the time a refresh takes shows from the second on
    return exporter.page.page().decode()


def test_busy_engine_with_adapters(
    records: Any, exporter: Exporter, golden: Callable[[str, str], None]
) -> None:
    records.engine()
    records.worker()
    golden("engine_busy.prom", page(exporter))


def test_idle_engine_has_no_waste_and_no_made_up_zeros(
    records: Any, exporter: Exporter, golden: Callable[[str, str], None]
) -> None:
    fresh = dict.fromkeys(("first_schedules", "prefill_tokens", "recomputed_tokens", "running"), 0)
    empty = {"pool0_live": 0, "pool0_slack": 0, "pool0_held": 0, "pool0_evictable": 0}
    records.engine(
        busy=0,
        pool0_clean=100,
        pool0_reserved=0,
        pool0_census_begun_s=float("nan"),
        **fresh,
        **empty,
    )
    text = page(exporter)
    assert "vramscope_kv_waste_ratio" not in text
    assert "vramscope_recompute_tax_ratio" not in text
    assert "vramscope_probe_drift_blocks" not in text
    golden("engine_idle.prom", text)


def test_probe_that_switched_itself_off_shows_only_that(
    records: Any, exporter: Exporter, golden: Callable[[str, str], None]
) -> None:
    off = dict.fromkeys(("steps", "requests", "preemption", "prefill", "blocks"), False)
    records.engine(capabilities=off, error="schedule: KeyError: 'x'")
    golden("engine_probe_off.prom", page(exporter))


def test_no_folder(exporter: Exporter, golden: Callable[[str, str], None]) -> None:
    golden("no_folder.prom", page(exporter))


def test_every_name_on_the_page_is_in_the_catalog(records: Any, exporter: Exporter) -> None:
    records.engine()
    records.worker()
    catalog = {metric.name.removesuffix("_total"): metric for metric in METRICS}
    for family in text_string_to_metric_families(page(exporter)):
        metric = catalog[family.name]
        assert family.type == metric.kind
        assert family.documentation == metric.help
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(metric.labels)


def test_source_that_comes_back_keeps_its_errors(records: Any, exporter: Exporter) -> None:
    exporter.refresh()
    assert exporter.sources.errors
    assert not exporter.sources.ready
    records.engine()
    exporter.refresh()
    assert exporter.sources.ready
    assert not exporter.sources.errors
    assert 'vramscope_source_errors_total{source="records"} 1.0' in exporter.page.page().decode()
