"""Recorded series and thresholds are of metrics that there are."""

import re
import subprocess
from pathlib import Path

import pytest

from vramscope.alerts.recording_rules import FILE, recording_rules
from vramscope.exporters.catalog import METRICS
from vramscope.exporters.catalog.recording import LEVELS, RECORDED, RecordedSeries
from vramscope.exporters.catalog.thresholds import THRESHOLDS, Threshold

ALERTS = Path(__file__).parents[3] / "alerts"
BY_NAME = {metric.name: metric for metric in METRICS}
NAME = re.compile(r"\bvramscope_[a-z0-9_]+")


def test_rule_file_is_in_date_and_prometheus_takes_it(promtool: str) -> None:
    assert (ALERTS / FILE).read_text() == recording_rules(), "run: make docs"
    done = subprocess.run(
        [promtool, "check", "rules", str(ALERTS / FILE)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"{len(RECORDED)} rules found" in done.stdout


@pytest.mark.parametrize("series", RECORDED, ids=lambda series: series.name)
def test_recorded_series_is_of_metrics_that_there_are(series: RecordedSeries) -> None:
    names = {name.removesuffix("_bucket") for name in NAME.findall(series.expression)}
    assert names
    assert names <= BY_NAME.keys()
    of_each_label = set(LEVELS[series.name.partition(":")[0]]) - {"cluster"}
    for name in names:
        assert of_each_label <= set(BY_NAME[name].label_names), name


@pytest.mark.parametrize("series", RECORDED, ids=lambda series: series.name)
def test_counters_are_asked_for_as_rates_and_gauges_are_not(series: RecordedSeries) -> None:
    for match in NAME.finditer(series.expression):
        kind = BY_NAME[match[0].removesuffix("_bucket")].kind
        rated = series.expression[: match.start()].endswith(("rate(", "increase("))
        assert rated == (kind != "gauge"), match[0]


def test_labels_of_conditions_exist() -> None:
    for series in RECORDED:
        for name, labels in re.findall(r"(vramscope_[a-z0-9_]+)\{([^}]*)\}", series.expression):
            found = set(re.findall(r"([a-z_]+)=", labels))
            assert found <= set(BY_NAME[name].label_names), series.name


def test_names_are_there_once() -> None:
    names = [series.name for series in RECORDED]
    assert len(names) == len(set(names))
    of = [threshold.of for threshold in THRESHOLDS]
    assert len(of) == len(set(of))


@pytest.mark.parametrize("threshold", THRESHOLDS, ids=lambda threshold: threshold.of)
def test_threshold_is_of_a_number_that_there_is_in_its_unit(threshold: Threshold) -> None:
    units = {series.name: series.unit for series in RECORDED}
    units |= {metric.name: metric.unit for metric in METRICS}
    assert units[threshold.of] == threshold.unit
    assert threshold.why


def test_critical_is_worse_than_warning() -> None:
    with pytest.raises(ValueError, match="critical is on the better side"):
        Threshold("x", "ratio", "above", 0.5, 0.1, "for a test")
