"""``vramscope record`` and ``replay`` as processes: what they print, write, serve and refuse."""

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from vramscope.exporters.recording.framing import MAGIC
from vramscope.exporters.recording.reader import Recording

CLI = [sys.executable, "-m", "vramscope.exporters.cli"]
Query = Callable[[str], list[dict[str, Any]]]


def run(*args: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*CLI, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@contextmanager
def started(*args: str | Path) -> Iterator[subprocess.Popen[str]]:
    command = [*CLI, *map(str, args)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as it:
        try:
            yield it
        finally:
            it.kill()


def record(records: Any, file: Path, *more: str) -> list[str]:
    sources = ["--gpu-source", "none", "--run-dir", str(records.folder), "--period", "0.1"]
    return ["record", "-o", str(file), *sources, *more]


def test_recording_ends_by_itself_and_says_what_it_wrote(records: Any, tmp_path: Path) -> None:
    records.engine()
    file = tmp_path / "a.rec"
    done = run(*record(records, file, "--duration", "0.45"))
    assert (done.returncode, done.stderr) == (0, "")
    with Recording(file) as recording:
        refreshes = list(recording)
    assert done.stdout.startswith(f"vramscope record: {file}: {len(refreshes)} refreshes in ")
    assert 2 <= len(refreshes) <= 5
    assert not recording.cut
    assert recording.started.period_s == 0.1
    assert all(refresh.samples[0].engine == "a" for refresh in refreshes)
    assert oct(file.stat().st_mode & 0o777) == "0o640"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_ends_a_recording_cleanly(
    records: Any, tmp_path: Path, number: signal.Signals
) -> None:
    records.engine()
    file = tmp_path / "a.rec"
    with started(*record(records, file)) as process:
        while not file.exists() or file.stat().st_size < 2 * len(MAGIC):
            assert process.poll() is None
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, "")
    assert "refreshes in" in out
    with Recording(file) as recording:
        assert all(refresh.samples for refresh in recording)
    assert not recording.cut


def test_file_that_is_there_is_left_alone(records: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.rec"
    file.write_text("mine")
    done = run(*record(records, file))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"{file}: is there already: want a new file"
    assert file.read_text() == "mine"


def test_full_disk_is_one_line_and_what_is_written_stays_readable(
    records: Any, tmp_path: Path
) -> None:
    records.engine()
    file = tmp_path / "a.rec"
    line = " ".join([*CLI, *record(records, file)])
    limited = ["sh", "-c", f"ulimit -f 16; exec {line}"]  # 8 or 16 KiB, as the shell counts
    done = subprocess.run(limited, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    (complaint,) = done.stderr.splitlines()
    assert complaint.startswith(f"{file}: File too large after ")
    with Recording(file) as recording:
        refreshes = list(recording)
    assert f"the {len(refreshes)} refreshes before are whole" in complaint
    assert refreshes
    assert not recording.cut


def test_once_prints_the_last_page_or_that_of_a_moment(recorded: Any) -> None:
    file, pages = recorded
    texts = [next(iter(page.values())).decode() for page in pages]
    compat = ("--compat", "dcgm")
    assert run("replay", file, "--once", *compat).stdout == texts[-1]
    assert run("replay", file, "--once", "--at", "0", *compat).stdout == texts[0]


def test_once_json_prints_the_signals(recorded: Any) -> None:
    done = run("replay", recorded[0], "--once", "--json")
    assert [engine["engine"] for engine in json.loads(done.stdout)["engines"]] == ["a", "b"]


def test_info_says_what_is_in_it(recorded: Any) -> None:
    done = run("replay", recorded[0], "--info")
    assert (done.returncode, done.stderr) == (0, "")
    assert "engine a: seen in 6" in done.stdout
    assert json.loads(run("replay", recorded[0], "--info", "--json").stdout)["refreshes"] == 7


def test_served_pages_are_those_of_then_until_the_end(recorded: Any) -> None:
    file, pages = recorded
    with started("replay", file, "--listen", "127.0.0.1:0", "--compat", "dcgm") as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("vramscope replay: http://127.0.0.1:")
        url = line.split()[-1]
        seen: set[bytes] = set()
        while len(seen) < 3:
            with urllib.request.urlopen(url, timeout=10) as answer:
                seen.add(answer.read())
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert seen <= {next(iter(page.values())) for page in pages}


def test_prometheus_scrapes_a_replay(recorded: Any, scrape: Callable[..., Query]) -> None:
    # Slowed down, so that it lasts while Prometheus starts.
    args = ("replay", recorded[0], "--listen", "127.0.0.1:0", "--speed", "0.05")
    with started(*args) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1].removesuffix("/metrics")
        query = scrape({"replay": url})
        (row,) = query('vramscope_build_info{job="replay"}')
        assert row["metric"]["version"] == "1.2.3"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("replay", "no.rec"), "no.rec: No such file or directory"),
        (("replay", "no.rec", "--at", "3"), "--at: want it with --once"),
        (("replay", "no.rec", "--json"), "--json: want it with --once or --info"),
        (("replay", "no.rec", "--once", "-f", "x.csv"), "no.rec: No such file or directory"),
        (("record", "--scrape", "nonsense"), "nonsense"),
    ],
)
def test_failure_is_one_line_and_exit_code_1(args: tuple[str, ...], complaint: str) -> None:
    done = run(*args)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert complaint in line


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("replay",), "FILE"),
        (("replay", "x", "--speed", "0"), "want a number over 0"),
        (("replay", "x", "--at", "-1"), "want a number from 0"),
        (("replay", "x", "--once", "--info"), "not allowed with"),
        (("record", "--duration", "inf"), "want seconds, e.g. 600"),
        (("record", "--period", "0"), "want seconds from 0.1 to 3600"),
    ],
)
def test_misuse_is_exit_code_2(args: tuple[str, ...], complaint: str) -> None:
    done = run(*args)
    assert done.returncode == 2
    assert complaint in done.stderr
