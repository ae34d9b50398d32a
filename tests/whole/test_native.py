"""Two real engines by their own pages, against what their probes counted."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vramscope.exporters.engine.native.fetch import Body
from vramscope.exporters.engine.native.page import read_page

pytestmark = pytest.mark.vllm

LAYOUTS = pytest.mark.parametrize("engine", ["a", "b"], ids=["worker-inside", "worker-apart"])
EXPORT = [sys.executable, "-m", "vramscope.exporters.cli", "export", "--gpu-source", "none"]


@LAYOUTS
def test_page_says_what_the_probe_counted(suite: Any, engine: str) -> None:
    # Both of the same moment: all was served, nothing aborted, and the engine had become idle.
    tally = suite.tallies[engine]
    (native,) = read_page(Body("text/plain", tally.metrics_after.encode()))
    probed = tally.after
    (kv,) = probed["kv"]
    assert (native.running, native.waiting) == (probed["running"], probed["waiting"]) == (0, 0)
    assert native.generated_tokens == probed["generated_tokens"] > 0
    assert native.cached_tokens == probed["cached_tokens"]
    assert native.finished == probed["finished"]["finished"] > 0
    assert native.preemptions == sum(probed["preemptions"].values()) > 0
    assert native.blocks == kv["blocks"]
    assert [native.block_size] == [group["block_size"] for group in kv["groups"]]
    assert native.kv_usage_ratio == (kv["live"] + kv["slack"] + kv["held"]) / kv["blocks"]
    assert native.lora_slots == probed["lora"]["gpu_slots"]


def export_once(run_dir: Path, url: str) -> str:
    done = subprocess.run(
        [*EXPORT, "--run-dir", str(run_dir), "--once", "--scrape", url],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def native_series(page: str) -> list[str]:
    return [s for s in page.splitlines() if 'source="native"' in s and not s.startswith("#")]


@LAYOUTS
def test_engine_whose_record_is_out_of_sight_is_shown_by_its_page(
    suite: Any, engine: str, tmp_path: Path
) -> None:
    page = export_once(tmp_path, suite.engines[engine])
    name = suite.engines[engine].removeprefix("http://")
    assert f'vramscope_source_up{{source="native:{name}"}} 1.0' in page
    assert any(series.startswith("vramscope_kv_usage_ratio") for series in native_series(page))


@LAYOUTS
def test_engine_with_a_record_is_known_by_its_port_and_shown_once(suite: Any, engine: str) -> None:
    page = export_once(suite.run_dir, suite.engines[engine])  # no name is given
    name = suite.engines[engine].removeprefix("http://")
    assert f'vramscope_native_superseded{{source="native:{name}"}} 1.0' in page
    assert native_series(page) == []
