"""Asks every query of the dashboards of a large fleet: ``make bench-dashboards``.

100 hosts, each with an engine and eight GPUs, an hour of a sample a minute, in a real Prometheus.
The series are synthetic: one real page of the exporter (vLLM's own scheduler without a model, eight
synthetic GPUs) with each host's names in it. Writes bench-results/dashboards.json.
"""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, TextIO

from figures import Figure, table, write
from synthetic_nvml import build_nvml

from vramscope.dashboards.build import dashboards

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RESULTS = ROOT / "bench-results" / "dashboards.json"

HOSTS = 100
MODELS = 5
CLUSTERS = 4
SAMPLES, STEP_S = 60, 60
RATE_INTERVAL_S = 4 * STEP_S
"""As Grafana takes it: four scrapes."""
ROUNDS = 3
TARGET_S = 1.0
VARIABLES = ("cluster", "model", "engine", "hostname", "uuid")
NAME = re.compile(r"\bvramscope_[a-z0-9_]+")
SAMPLE = re.compile(r"(vramscope_[a-z0-9_]+)(?:\{(.*)\})? (\S+)$")


def main() -> int:
    """Fill, ask, print, write."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        data = folder / "data"
        began_s, began_at = time.monotonic(), time.time()
        print("one page of the exporter ... ", end="", flush=True)
        lines = page(folder)
        print(f"{len(lines)} series\nfilling Prometheus ... ", end="", flush=True)
        begins_s = int(began_at) // 7200 * 7200 - 7200  # a block of two hours that is over
        samples = fill(data, lines, folder / "samples.txt", begins_s)
        print(f"{samples:,} samples in {time.monotonic() - began_s:.0f} s", flush=True)
        port = free_port()
        prometheus = subprocess.Popen(
            [
                program("prometheus"),
                f"--config.file={config(folder)}",
                f"--storage.tsdb.path={data}",
                "--storage.tsdb.retention.time=10y",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stderr=subprocess.DEVNULL,
        )
        try:
            figures = list(measure(f"http://127.0.0.1:{port}", begins_s))
        finally:
            prometheus.terminate()
            prometheus.wait(30)
    sys.stdout.write(table(figures))
    write(figures, RESULTS)
    sys.stdout.write(f"\nwritten: {RESULTS.relative_to(ROOT)}\n")
    return 0


def page(folder: Path) -> list[tuple[str, str, float]]:
    """Return (metric, labels, value) of a real page, of what the dashboards ask for."""
    run_dir = folder / "run"
    os.environ["VRAMSCOPE_RUN_DIR"] = str(run_dir)
    build_nvml(folder)
    from modelless import Modelless, configuration

    from vramscope.exporters.engine.probe import register

    register()
    vllm = configuration(folder, 64)
    engine = Modelless(vllm.scheduler_config.get_scheduler_cls(), vllm, 64, 1)
    for _ in range(200):
        engine.step_s()
    command = ["export", "--once", "--run-dir", str(run_dir), "--gpu-source", "nvml"]
    done = subprocess.run(
        [sys.executable, "-m", "vramscope.exporters.cli", *command],
        env={**os.environ, "LD_LIBRARY_PATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    asked = {name for query in queries() for name in NAME.findall(query[1])}
    found = (SAMPLE.match(line) for line in done.stdout.splitlines())
    return [
        (match[1], match[2] or "", float(match[3]))
        for match in found
        if match and match[1] in asked
    ]


def fill(data: Path, lines: list[tuple[str, str, float]], file: Path, begins_s: int) -> int:
    """Write an hour of every host into a data folder; return the number of samples."""
    with file.open("w") as out:
        for host in range(HOSTS):
            for metric, labels, value in lines:
                one_series(out, metric, of_host(labels, host), value, begins_s)
        out.write("# EOF\n")
    make = ["tsdb", "create-blocks-from", "openmetrics", str(file), str(data)]
    subprocess.run([program("promtool"), *make], check=True, stdout=subprocess.DEVNULL)
    return HOSTS * len(lines) * SAMPLES


def of_host(labels: str, host: int) -> str:
    """Return a sample's labels with a host's names in it."""
    labels = re.sub(r'engine="[^"]*"', f'engine="engine-{host}"', labels)
    labels = re.sub(r'model="[^"]*"', f'model="model-{host % MODELS}"', labels)
    labels = re.sub(r'hostname="[^"]*"', f'hostname="host-{host}"', labels)
    labels = re.sub(r'uuid="([^"]*)"', rf'uuid="\1-{host}"', labels)
    own = f'instance="host-{host}:19400",job="vramscope",cluster="cluster-{host % CLUSTERS}"'
    return f"{labels},{own}" if labels else own


def one_series(out: TextIO, metric: str, labels: str, value: float, begins_s: int) -> None:
    """Write an hour of one series: what only goes up goes up."""
    grows = metric.endswith(("_total", "_bucket", "_sum", "_count"))
    draw = random.Random(labels)  # noqa: S311 (a bench)
    rate = (abs(value) or 1) / 3600 * draw.random()
    name = f"{metric}{{{labels}}}"
    out.writelines(
        f"{name} {value + rate * n * STEP_S if grows else value * (0.8 + 0.4 * draw.random()):.6g} "
        f"{begins_s + n * STEP_S}\n"
        for n in range(SAMPLES)
    )


def queries() -> Iterator[tuple[str, str, bool]]:
    """Yield (name, query with its variables at All, whether only its value now is asked for)."""
    for one in dashboards():
        for panel in one["panels"]:
            for target in panel.get("targets", ()):
                query = target["expr"].replace("$__rate_interval", f"{RATE_INTERVAL_S}s")
                for variable in VARIABLES:
                    query = query.replace(f"${variable}", ".*")
                name = f"{one['uid']}: {panel['title']} {target['refId']}"
                yield name, query, bool(target.get("instant"))


def measure(url: str, begins_s: int) -> Iterator[Figure]:
    """Yield the slowest query, and all dashboards' panels together."""
    wait_until_ready(url)
    ends_s = begins_s + (SAMPLES - 1) * STEP_S
    took_s: dict[str, float] = {}
    series = 0
    for name, query, instant in queries():
        rounds = []
        for _ in range(ROUNDS):
            started_s = time.perf_counter()
            found = ask(url, query, ends_s, instant=instant)
            rounds.append(time.perf_counter() - started_s)
        took_s[name] = median(rounds)
        series += bool(found)
    for name, seconds in sorted(took_s.items(), key=lambda item: -item[1])[:5]:
        print(f"{seconds:8.3f} s  {name}")
    print(f"{series} of {len(took_s)} queries have data here")
    yield Figure("slowest_query", max(took_s.values()), "s", TARGET_S)
    yield Figure("median_query", median(took_s.values()), "s", None)
    yield Figure("all_queries", sum(took_s.values()), "s", None)


def ask(url: str, query: str, ends_s: int, *, instant: bool) -> list[Any]:
    """Return what Prometheus answers: over the hour, or at its end."""
    values: dict[str, Any] = {"query": query, "time": ends_s}
    path = "query"
    if not instant:
        path = "query_range"
        begins_s = ends_s - (SAMPLES - 1) * STEP_S
        values = {"query": query, "start": begins_s, "end": ends_s, "step": STEP_S}
    asked = urllib.parse.urlencode(values)
    with urllib.request.urlopen(f"{url}/api/v1/{path}?{asked}", timeout=120) as answer:  # noqa: S310
        result: list[Any] = json.loads(answer.read())["data"]["result"]
        return result


def wait_until_ready(url: str) -> None:
    """Wait for Prometheus to have read its blocks."""
    deadline_s = time.monotonic() + 60
    while not is_ready(url):
        if time.monotonic() > deadline_s:
            raise RuntimeError("Prometheus is not ready after a minute")
        time.sleep(0.2)


def is_ready(url: str) -> bool:
    """Whether Prometheus answers queries."""
    try:
        urllib.request.urlopen(f"{url}/-/ready", timeout=5).close()  # noqa: S310 (ours)
    except OSError:
        return False
    return True


def free_port() -> int:
    """Return a port that is free now."""
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def config(folder: Path) -> Path:
    """Write a configuration that scrapes nothing."""
    file = folder / "prometheus.yml"
    file.write_text("scrape_configs: []\n")
    return file


def program(name: str) -> str:
    """Return the path of a program that ``make deps`` unpacked, or its name."""
    unpacked = ROOT / ".deps" / "bin" / name
    return str(unpacked) if unpacked.exists() else name


if __name__ == "__main__":
    sys.exit(main())
