"""The whole way from the library's calls to a Prometheus: real nvidia-ml-py, synthetic GPUs."""

import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Query = Callable[[str], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def exporter(real_named_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an exporter that finds the library as it would find the driver's."""
    run_dir = tmp_path_factory.mktemp("run")
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "vramscope.exporters.cli", "export", "--period", "0.5"),
            *("--listen", "127.0.0.1:0", "--run-dir", str(run_dir)),
            *("--gpu-source", "auto", "--compat", "dcgm"),
        ],
        env={**os.environ, "LD_LIBRARY_PATH": str(real_named_library), "NODE_NAME": "node-7"},
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
def query(exporter: str, scrape: Callable[[dict[str, str]], Query]) -> Query:
    return scrape({"gpus": exporter})


def test_prometheus_has_all_gpus_of_the_node(query: Query) -> None:
    rows = query('vramscope_gpu_memory_bytes{kind="used"}')
    assert {row["metric"]["hostname"] for row in rows} == {"node-7"}
    assert sorted(row["metric"]["gpu"] for row in rows) == [str(gpu) for gpu in range(8)]


def test_memory_kinds_sum_to_the_total(query: Query) -> None:
    parts = query('sum by (gpu) (vramscope_gpu_memory_bytes{kind!="total"})')
    totals = query('vramscope_gpu_memory_bytes{kind="total"}')
    assert {r["metric"]["gpu"]: float(r["value"][1]) for r in parts} == {
        r["metric"]["gpu"]: float(r["value"][1]) for r in totals
    }


def test_xids_are_there_at_0_before_the_first(query: Query) -> None:
    rows = query('vramscope_gpu_xid_events_total{xid="79"}')
    assert len(rows) == 8
    assert {row["value"][1] for row in rows} == {"0"}


def test_each_gpu_has_one_verdict(query: Query) -> None:
    rows = query("sum by (gpu) (vramscope_gpu_bound)")
    assert {row["value"][1] for row in rows} == {"1"}


def test_dashboards_of_dcgm_exporter_find_their_names(query: Query) -> None:
    assert len(query("DCGM_FI_DEV_FB_USED")) == 8


def test_our_part_of_the_page_has_no_fault(exporter: str, promtool: str) -> None:
    with urllib.request.urlopen(f"{exporter}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines(keepends=True)
    ours = "".join(line for line in lines if "DCGM_FI_" not in line)
    done = subprocess.run(
        [promtool, "check", "metrics"], input=ours, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
