"""Whole exporters beside each other: CPU a second and memory, on the same synthetic GPUs.

A refresh and a scrape each second. The synthetic library lacks five of the functions that
nvitop-exporter calls (fan speed, power limit, CUDA version, processes' use), which it goes on
without, so on a real host it does somewhat more than here; ours reads all it ever does.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from figures import Figure, figure

__all__ = ["most_rss_bytes", "side_by_side"]

ROUNDS = 8
ROUND_S = 3
"""Each second a refresh and a scrape."""


class Running(NamedTuple):
    """An exporter that answers."""

    name: str
    pid: int
    url: str


def side_by_side(library_folder: Path) -> Iterator[Figure]:
    """Measure ours and nvitop-exporter, where its program is found.

    Args:
        library_folder: of the synthetic NVML.
    """
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library_folder)}
    ours = [sys.executable, "-m", "vramscope.exporters.cli", "export", "--listen", "127.0.0.1:0"]
    ours += ["--gpu-source", "nvml", "--run-dir", str(library_folder)]
    nvitop = os.environ.get("NVITOP_EXPORTER") or shutil.which("nvitop-exporter")
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(exporter("export", ours, environment))]
        if nvitop:
            # It picks no port of its own; this one is free and outside the ephemeral range.
            theirs = [nvitop, "--port", "19977"]
            running.append(stack.enter_context(exporter("nvitop_exporter", theirs, environment)))
        else:
            sys.stdout.write("no nvitop-exporter: set NVITOP_EXPORTER to its program to compare\n")
        yield from compare(running)


def compare(running: Sequence[Running]) -> Iterator[Figure]:
    """Scrape each once a second, one after the other; yield CPU a second and memory."""
    cpu_s: dict[str, list[float]] = {one.name: [] for one in running}
    for _ in range(ROUNDS):
        before_s = [cpu_so_far_s(one.pid) for one in running]
        for _ in range(ROUND_S):
            for one in running:
                scrape(one.url)
            time.sleep(1)
        for one, was_s in zip(running, before_s, strict=True):
            cpu_s[one.name].append((cpu_so_far_s(one.pid) - was_s) / ROUND_S)
    for one in running:
        yield figure(f"{one.name}_refresh_and_scrape_cpu", cpu_s[one.name], "s", None)
        yield Figure(f"{one.name}_rss", most_rss_bytes(one.pid), "bytes", None)


@contextlib.contextmanager
def exporter(name: str, command: list[str], environment: Mapping[str, str]) -> Iterator[Running]:
    """Run an exporter; yield it once it has said where it serves."""
    # One pipe for both streams: ours says it on stdout, nvitop's on stderr.
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        if process.stdout is None:
            raise RuntimeError("no output to read the URL from")
        said = []
        for line in process.stdout:
            said.append(line)
            found = re.search(r"http://[0-9.]+:[0-9]+/metrics", line)
            if found:
                yield Running(name, process.pid, found[0])
                return
        raise RuntimeError(f"{command} ended without serving:\n{''.join(said)}")
    finally:
        process.kill()
        process.communicate()


def scrape(url: str) -> None:
    """Scrape as Prometheus does."""
    headers = {"Accept": "application/openmetrics-text", "Accept-Encoding": "gzip"}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as page:  # noqa: S310 (ours)
        page.read()


def cpu_so_far_s(pid: int) -> float:
    """Return the CPU time of a process' threads; one that has ended takes its own with it."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def most_rss_bytes(pid: int) -> float:
    """Return the most memory that a process has held."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return float(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/{pid}/status has no VmHWM")
