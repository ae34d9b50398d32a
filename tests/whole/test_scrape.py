"""A real Prometheus scrapes exporter and controller."""

import json
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.vllm


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
def scraping(
    suite: Any,
    prometheus: str,
    free_port: Callable[[], int],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """The URL of a Prometheus with its own port and folder."""
    folder = tmp_path_factory.mktemp("prometheus")
    targets = {"exporter": suite.exporter, "controller": suite.admin}
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": [url.removeprefix("http://")]}]}
            for job, url in targets.items()
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [
                prometheus,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module")
def query(scraping: str) -> Callable[[str], list[dict[str, Any]]]:
    """Asks PromQL; returns the vector."""

    def ask(expression: str) -> list[dict[str, Any]]:
        asked = urllib.parse.urlencode({"query": expression})
        try:
            answer = json.loads(get(f"{scraping}/api/v1/query?{asked}"))
        except OSError:
            return []  # not listening yet
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result

    return ask


@pytest.fixture(scope="module")
def scraped(query: Callable[[str], list[dict[str, Any]]]) -> Callable[[str], list[dict[str, Any]]]:
    """The same, after both targets were scraped."""
    import time

    deadline_s = time.monotonic() + 60
    while len(query("up == 1")) < 2:
        assert time.monotonic() < deadline_s, query("up")
        time.sleep(0.2)
    return query


def test_both_targets_are_up(scraped: Callable[[str], list[dict[str, Any]]]) -> None:
    assert {row["metric"]["job"] for row in scraped("up == 1")} == {"exporter", "controller"}


@pytest.mark.parametrize("engine", ["a", "b"])
def test_prometheus_has_what_the_exporter_says(
    suite: Any, scraped: Callable[[str], list[dict[str, Any]]], engine: str
) -> None:
    (row,) = scraped(f'vramscope_generated_tokens_total{{engine="{engine}"}}')
    assert float(row["value"][1]) == suite.signals(engine)["generated_tokens"]


def test_states_of_a_pool_sum_to_its_blocks(
    scraped: Callable[[str], list[dict[str, Any]]],
) -> None:
    rows = scraped("sum by (engine) (vramscope_kv_blocks)")
    assert {row["metric"]["engine"]: float(row["value"][1]) for row in rows} == {"a": 31, "b": 31}


def test_controller_shows_its_engines_up(scraped: Callable[[str], list[dict[str, Any]]]) -> None:
    assert len(scraped("vramscope_engine_up == 1")) == 2


def test_no_daemon_of_the_system_was_started() -> None:
    for service in ("prometheus", "prometheus-alertmanager"):
        assert not Path(f"/etc/init.d/{service}").exists()
