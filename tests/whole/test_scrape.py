"""A real Prometheus scrapes exporter and controller."""

import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.vllm

Query = Callable[[str], list[dict[str, Any]]]


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize("page", ["exporter", "admin"])
def test_promtool_finds_no_fault(suite: Any, promtool: str, page: str) -> None:
    text = get(f"{getattr(suite, page)}/metrics")
    done = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.fixture(scope="module")
def scraped(suite: Any, scrape: Callable[[dict[str, str]], Query]) -> Query:
    return scrape({"exporter": suite.exporter, "controller": suite.admin})


def test_both_targets_are_up(scraped: Query) -> None:
    assert {row["metric"]["job"] for row in scraped("up == 1")} == {"exporter", "controller"}


@pytest.mark.parametrize("engine", ["a", "b"])
def test_prometheus_has_what_the_exporter_says(suite: Any, scraped: Query, engine: str) -> None:
    (row,) = scraped(f'vramscope_generated_tokens_total{{engine="{engine}"}}')
    assert float(row["value"][1]) == suite.signals(engine)["generated_tokens"]


def test_states_of_a_pool_sum_to_its_blocks(
    scraped: Query,
) -> None:
    rows = scraped("sum by (engine) (vramscope_kv_blocks)")
    assert {row["metric"]["engine"]: float(row["value"][1]) for row in rows} == {"a": 31, "b": 31}


def test_controller_shows_its_engines_up(scraped: Query) -> None:
    assert len(scraped("vramscope_engine_up == 1")) == 2


def test_no_daemon_of_the_system_was_started() -> None:
    for service in ("prometheus", "prometheus-alertmanager"):
        assert not Path(f"/etc/init.d/{service}").exists()
