"""``vramscope export`` as a process: what it prints, serves and refuses."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Without GPUs, of which a host may have some or none.
COMMAND = [sys.executable, "-m", "vramscope.exporters.cli", "export", "--gpu-source", "none"]


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *options], capture_output=True, text=True, timeout=60, check=False
    )


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.fixture
def served(records: Any) -> Iterator[str]:
    """The URL of an exporter of the records folder; it ends with exit code 0 on SIGTERM."""
    process = subprocess.Popen(
        [*COMMAND, "--listen", "127.0.0.1:0", "--run-dir", str(records.folder), "--period", "0.1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert line.startswith("vramscope export: http://127.0.0.1:")
        yield line.split()[-1].removesuffix("/metrics")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        process.stdout.close()
    finally:
        process.kill()
        process.wait()


def test_pages_of_a_host_with_an_engine(records: Any, served: str) -> None:
    records.engine()
    assert get(f"{served}/healthz") == (200, "ok\n")
    assert get(f"{served}/nothing")[0] == 404
    _, text = get(f"{served}/signals")
    (engine,) = json.loads(text)["engines"]
    assert engine["engine"] == "a"
    assert engine["signals"]["recompute_tax"] == 0.125
    assert engine["kv"][0]["signals"]["usable_blocks"] == 75


def test_not_ready_says_why(served: str) -> None:
    status, text = get(f"{served}/readyz")
    assert status == 503
    assert "no such folder" in text


def test_ready_once_a_source_reads(records: Any, served: str) -> None:
    records.engine()
    deadline_s = time.monotonic() + 20
    while 'vramscope_source_up{source="engine:a"} 1.0' not in get(f"{served}/metrics")[1]:
        assert time.monotonic() < deadline_s, "no refresh found the engine"
        time.sleep(0.05)
    assert get(f"{served}/readyz") == (200, "ok\n")
    _, page = get(f"{served}/metrics")
    assert 'vramscope_exporter_connections{state="answering"}' in page


def test_once_prints_the_page(records: Any) -> None:
    records.engine()
    done = run("--once", "--run-dir", str(records.folder))
    assert (done.returncode, done.stderr) == (0, "")
    assert "# TYPE vramscope_kv_blocks gauge" in done.stdout


def test_once_json_prints_the_signals(records: Any) -> None:
    records.engine()
    done = run("--once", "--json", "--run-dir", str(records.folder))
    assert [engine["engine"] for engine in json.loads(done.stdout)["engines"]] == ["a"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda data: data[:700], "truncated: 700 of"),
        (lambda data: data[:8] + b"\x04\0\0\0" + data[12:], "schema 4 is newer than 3"),
        (lambda data: b"\0" * len(data), "not a vramscope record"),
    ],
    ids=["truncated", "newer", "not-a-record"],
)
def test_bad_record_is_one_line_and_exit_code_1(records: Any, change: Any, complaint: str) -> None:
    writer = records.engine()
    data = os.pread(writer._fd, writer.layout.file_bytes, 0)
    bad = records.folder / "bad.vramscope"
    bad.write_bytes(change(data))
    done = run("--once", "--run-dir", str(records.folder))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert str(bad) in line
    assert complaint in line
    assert 'vramscope_source_up{source="engine:a"} 1.0' in done.stdout  # the others go on


def test_missing_folder_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    done = run("--once", "--run-dir", str(tmp_path / "none"))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "no such folder" in line


def test_port_in_use_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run("--listen", address, "--run-dir", str(tmp_path))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert f"can't listen on {address}" in line
    assert "--listen HOST:PORT" in line


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--listen", "19400"), "want HOST:PORT, e.g. 127.0.0.1:19400"),
        (("--listen", "127.0.0.1:99999"), "want HOST:PORT"),
        (("--period", "0"), "want seconds from 0.1 to 3600"),
        (("--period", "soon"), "want seconds from 0.1 to 3600"),
    ],
)
def test_misuse_is_exit_code_2_and_says_what_is_wanted(
    options: tuple[str, ...], complaint: str
) -> None:
    done = run(*options)
    assert done.returncode == 2
    assert complaint in done.stderr
