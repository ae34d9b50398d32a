"""Each panel's queries, against a real Prometheus on real engines and synthetic GPUs."""

import concurrent.futures
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vramscope.dashboards.build import dashboards

pytestmark = pytest.mark.vllm

Query = Callable[[str], list[dict[str, Any]]]
NVML = Path(__file__).parents[1] / "exporters" / "gpu" / "synthetic" / "nvml.c"

EMPTY = {
    "vramscope-links: How full is the fabric? A": "no InfiniBand port on this host",
    "vramscope-links: Does the fabric make errors? A": "no InfiniBand port on this host",
    "vramscope-links: Which XIDs came within the hour? A": "the synthetic GPUs have had none",
}
"""Queries without data here, by dashboard, panel and letter: why."""
SOMETIMES_EMPTY = {
    "vramscope-fleet: Nearest exhaustion A": "absent while no pool is being filled",
    "vramscope-vram: How long do the blocks last? A": "absent while no pool is being filled",
}


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an exporter on eight synthetic GPUs."""
    folder = tmp_path_factory.mktemp("nvml")
    name = "libnvidia-ml.so.1"
    command = ["gcc", "-shared", "-fPIC", f"-Wl,-soname,{name}", str(NVML)]
    subprocess.run([*command, "-o", str(folder / name)], check=True)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "vramscope.exporters.cli", "export", "--period", "0.5"),
            *("--listen", "127.0.0.1:0", "--run-dir", str(folder), "--gpu-source", "nvml"),
        ],
        env={**os.environ, "LD_LIBRARY_PATH": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1].removesuffix("/metrics")
        process.terminate()
        assert process.wait(20) == 0
        process.stdout.close()
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def asked(suite: Any, gpus: str, scrape: Callable[[dict[str, str]], Query]) -> Query:
    """Asks as Grafana would, with all variables at All, after a load that it has seen."""
    query = scrape({"exporter": suite.exporter, "controller": suite.admin, "gpus": gpus})
    deadline_s = time.monotonic() + 12
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        while time.monotonic() < deadline_s:
            names = ["tiny", "ad0", "ad1", "ad2"] * 3
            list(pool.map(lambda name: stream(suite.front_door, name), names))

    def ask(expression: str) -> list[dict[str, Any]]:
        for variable in ("cluster", "model", "engine", "hostname", "uuid"):
            expression = expression.replace(f"${variable}", ".*")
        return query(expression.replace("$__rate_interval", "30s"))

    return ask


def stream(front_door: str, model: str) -> None:
    """Have a streamed answer."""
    body = {"model": model, "prompt": "fill the pool " * 3, "max_tokens": 80, "stream": True}
    request = urllib.request.Request(
        f"{front_door}/v1/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()


def test_each_query_has_data_but_those_that_are_empty_by_nature(asked: Query) -> None:
    empty = {
        f"{one['uid']}: {panel['title']} {target['refId']}"
        for one in dashboards()
        for panel in one["panels"]
        for target in panel.get("targets", ())
        if not asked(target["expr"])
    }
    assert sorted(empty - SOMETIMES_EMPTY.keys()) == sorted(EMPTY)
