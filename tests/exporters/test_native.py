"""Engines without the probe on the exporter's page."""

import http.server
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vramscope.exporters.catalog import METRICS
from vramscope.exporters.engine.host import HostRecords
from vramscope.exporters.engine.native.fetch import Body
from vramscope.exporters.engine.native.follow import Follower, Got
from vramscope.exporters.engine.native.page import read_page
from vramscope.exporters.engine.native.target import Target
from vramscope.exporters.exporter import Exporter
from vramscope.exporters.exposition.native import PROBE_ONLY
from vramscope.exporters.native import NativeEngines

NOW_S = 1000.5
DATA = Path(__file__).parent / "engine" / "native" / "data"
COMMAND = [sys.executable, "-m", "vramscope.exporters.cli", "export"]
FAR = Target("far", "http://192.0.2.1:8000/metrics")

Page = Callable[..., str]


def got(name: str) -> Got:
    """Return what a follower keeps of a recorded page, half a second old."""
    data = (DATA / f"vllm_0.32_{name}.txt").read_bytes()
    return Got(read_page(Body("text/plain", data)), NOW_S - 0.5)


def native_series(text: str) -> list[str]:
    return [s for s in text.splitlines() if 'source="native"' in s and not s.startswith("#")]


@pytest.fixture
def page(records: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    """Returns the exporter's page, given what each target answered."""
    monkeypatch.setattr("vramscope.exporters.exporter.version", lambda _: "1.2.3")
    records.folder.mkdir()
    host = HostRecords(records.folder, lambda: NOW_S)

    def make(answers: dict[Target, Got]) -> str:
        follower = Follower(answers, 1.0)
        follower.got = dict(answers)
        native = NativeEngines(follower)
        exporter = Exporter(host.read, native=native, clock=lambda: NOW_S)
        exporter.refresh()
        exporter.refresh()  # the time a refresh takes shows from the second on
        return exporter.page.page().decode()

    yield make
    host.close()


@pytest.mark.parametrize("recorded", ["lora_busy", "dp2_busy", "example_connector"])
def test_page_of_an_engine_without_the_probe(
    page: Page, recorded: str, golden: Callable[[str, str], None]
) -> None:
    golden(f"native_{recorded}.prom", page({FAR: got(recorded)}))


def test_every_series_of_a_native_engine_says_so(page: Page) -> None:
    lines = [line for line in page({FAR: got("dp2_busy")}).splitlines() if 'engine="far"' in line]
    assert lines
    for line in lines:
        assert 'source="native"' in line or line.startswith("vramscope_native_"), line


def test_what_only_the_probe_knows_is_absent_and_its_capability_0(page: Page) -> None:
    text = page({FAR: got("lora_busy")})
    for name in ("kv_blocks", "kv_slack", "kv_held", "kv_waste", "recompute", "lora_resident"):
        assert f"vramscope_{name}" not in text
    for feature in PROBE_ONLY:
        assert (
            f'vramscope_probe_capability{{dp_rank="0",engine="far",feature="{feature}",'
            'model="tiny",source="native"} 0.0' in text
        )


def test_series_of_probed_engines_are_as_without_a_scrape(records: Any, page: Page) -> None:
    records.engine()
    alone = page({})
    beside = page({FAR: got("lora_busy")})
    assert {line for line in alone.splitlines() if 'engine="a"' in line} == {
        line for line in beside.splitlines() if 'engine="a"' in line
    }


def test_failed_page_has_no_series_but_its_source(page: Page) -> None:
    text = page({FAR: Got((), NOW_S, "http://192.0.2.1:8000/metrics: answered 503")})
    assert 'vramscope_source_up{source="native:far"} 0.0' in text
    assert 'engine="far"' not in text


def test_the_probe_wins_over_the_page_of_its_name(
    records: Any, page: Page, caplog: pytest.LogCaptureFixture
) -> None:
    records.engine()
    caplog.set_level(logging.INFO)
    text = page({replace(FAR, name="a"): got("lora_busy")})
    assert native_series(text) == []
    assert 'vramscope_native_superseded{source="native:a"} 1.0' in text
    assert 'vramscope_source_up{source="native:a"} 1.0' in text
    said = [line for line in caplog.messages if line.startswith("native:a")]
    assert said == ["native:a: engine a has a probe: shown from there"]  # once, not each refresh


def test_the_probe_wins_over_the_page_of_its_process(records: Any, page: Page) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
        target = Target("b", f"http://127.0.0.1:{port}/metrics", port)
        process = start_engine_core(records)
        try:
            text = page({target: got("lora_busy")})
        finally:
            process.communicate("", timeout=20)
    assert 'vramscope_engine_requests{dp_rank="0",engine="a"' in text
    assert 'vramscope_native_superseded{source="native:b"} 1.0' in text
    assert native_series(text) == []


# A child of the process that listens writes the record: locks of one's own can't be seen.
CHILD = """
import importlib.util, pathlib, sys
spec = importlib.util.spec_from_file_location("fake_probe", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
writer = module.write_engine(pathlib.Path(sys.argv[2]))
print("written", flush=True)
sys.stdin.read()
writer.close()
"""


def start_engine_core(records: Any) -> subprocess.Popen[str]:
    """Have a child of this process be the EngineCore of engine a, with a record."""
    helper = Path(__file__).parent / "fake_probe.py"
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(helper), str(records.folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "written\n"
    return process


def test_probe_that_is_off_leaves_the_page_to_speak(records: Any, page: Page) -> None:
    off = dict.fromkeys(("steps", "requests", "preemption", "prefill", "blocks"), False)
    records.engine(capabilities=off, error="schedule: KeyError: 'x'")
    text = page({replace(FAR, name="a"): got("lora_busy")})
    assert 'vramscope_native_superseded{source="native:a"} 0.0' in text
    assert native_series(text)


def test_rank_without_a_record_is_shown_from_the_page(records: Any, page: Page) -> None:
    records.engine()  # rank 0 of two
    text = page({replace(FAR, name="a"): got("dp2_busy")})
    native = native_series(text)
    assert native
    assert all('dp_rank="1"' in line for line in native)


def test_metric_that_the_page_lacks_is_said(page: Page, caplog: pytest.LogCaptureFixture) -> None:
    sample = replace(got("lora_busy").samples[0], preemptions=None)
    text = page({FAR: Got((sample,), NOW_S)})
    assert "vramscope_preemptions_total" not in text
    assert 'metric="vllm:num_preemptions_total",model="tiny"} 0.0' in text
    warned = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert warned == ["native:far: no vllm:num_preemptions_total: what it gives is left out"]


def test_why_native_preemptions_are_late_is_said_once(
    page: Page, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    page({FAR: got("lora_busy")})
    assert len([line for line in caplog.messages if "requests aborted meanwhile" in line]) == 1


def test_native_names_are_in_the_catalog_with_their_labels(page: Page) -> None:
    catalog = {metric.name: metric for metric in METRICS}
    for line in page({FAR: got("example_connector")}).splitlines():
        if 'engine="far"' in line:
            name, labels = line.split("{")
            for label in labels.rpartition("}")[0].split('",'):
                assert label.split("=")[0] in catalog[name].label_names


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers each path with a recorded page, or 404."""

    def do_GET(self) -> None:  # the base class's name
        file = DATA / f"vllm_0.32{self.path.replace('/', '_')}.txt"
        self.send_response(200 if file.is_file() else 404)
        self.send_header("Content-Type", "text/plain; version=1.0.0; charset=utf-8")
        self.end_headers()
        if file.is_file():
            self.wfile.write(file.read_bytes())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_address[1]}"
        serving.shutdown()
        thread.join()


def export_once(folder: Path, *scrape: str) -> subprocess.CompletedProcess[str]:
    options = [f"--scrape={target}" for target in scrape]
    return subprocess.run(
        [*COMMAND, "--gpu-source", "none", "--run-dir", str(folder), "--once", *options],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "no_proxy": "*"},
    )


def test_command_reads_each_page_once(tmp_path: Path, server: str) -> None:
    done = export_once(tmp_path, f"one={server}/lora_busy", f"two={server}/dp2_busy")
    assert (done.returncode, done.stderr) == (0, "")
    assert 'engine="one",model="tiny",source="native",state="running"} 4.0' in done.stdout
    assert 'dp_rank="1",engine="two"' in done.stdout


def test_bad_page_is_one_line_and_exit_code_1_and_the_others_go_on(
    tmp_path: Path, server: str
) -> None:
    done = export_once(tmp_path, f"one={server}/lora_busy", f"two={server}/nothing")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert f"native:two: {server}/nothing: no such page (404)" in line
    assert 'vramscope_source_up{source="native:one"} 1.0' in done.stdout


def test_misuse_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    done = export_once(tmp_path, "engine:8000")
    assert done.returncode == 1
    assert "--scrape engine:8000: want http://" in done.stderr
