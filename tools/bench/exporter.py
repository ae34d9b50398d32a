"""Measures the exporter: ``make bench-exporter``. Writes bench-results/exporter.json.

Each ratio is taken within one round and conditions alternate, so that a busy machine moves both
sides; A/A is what the same rounds differ by among themselves. Scrapes are Prometheus' own:
OpenMetrics, gzip, a kept connection, while the page is refreshed once a second.
"""

import contextlib
import json
import os
import random
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from certificate import write_certificate
from figures import Figure, figure, quantile, ratio_figure, table, write
from prometheus_client import CollectorRegistry, generate_latest
from scraper import Scraper, connected
from side_by_side import most_rss_bytes, side_by_side
from synthetic_nvml import build_nvml
from ten_thousand import fill

from vramscope.exporters.exposition.families import Families
from vramscope.exporters.exposition.rendered import Renderer

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RESULTS = ROOT / "bench-results" / "exporter.json"

RENDER_ROUNDS = 30
REFRESH_ROUNDS = 60
SCRAPE_ROUNDS = 8
SCRAPES = 400
"""Of a round; its 99th percentile is the fourth longest."""
SCRAPE_PERIOD_S = 0.005
"""So a round takes two seconds, and each has its share of scrapes that meet a refresh."""
IDLE_CONNECTIONS = 200
IDLE_HANDSHAKES = 20


def main() -> int:
    """Measure, print, write."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        build_nvml(folder)
        figures = [*refreshes(folder), *renderings(), *scrapes(folder), *side_by_side(folder)]
    sys.stdout.write(table(figures))
    write(figures, RESULTS)
    sys.stdout.write(f"\nwritten: {RESULTS.relative_to(ROOT)}\n")
    return 0


def renderings() -> Iterator[Figure]:
    """Compare rendering with prometheus_client's of the same samples: equal bytes, CPU time."""
    for still, name, target in (
        (0.0, "refresh_vs_generate_latest_cpu", 0.1),
        (0.5, "refresh_vs_generate_latest_cpu_half_unchanged", None),
    ):
        chance, renderer = random.Random(1), Renderer()  # noqa: S311 (a bench)
        ours_s, theirs_s = [], []
        for _ in range(RENDER_ROUNDS + 1):
            families = Families()
            fill(families, chance, still=still)
            start_s = time.process_time()
            ours = renderer.render(families).page()
            ours_s.append(time.process_time() - start_s)
            registry = CollectorRegistry(auto_describe=False)
            registry.register(families)
            start_s = time.process_time()
            theirs = generate_latest(registry)
            theirs_s.append(time.process_time() - start_s)
            if ours != theirs:
                raise RuntimeError("the pages differ")
        # The first round escapes every label; each later one is what a refresh costs.
        yield ratio_figure(name, ours_s[1:], theirs_s[1:], target)
        if target:
            yield figure("render_10k_series_cpu", ours_s[1:], "s", None)
            yield figure("generate_latest_10k_series_cpu", theirs_s[1:], "s", None)


def refreshes(scratch: Path) -> Iterator[Figure]:
    """Measure whole refreshes of eight GPUs."""
    done = subprocess.run(
        [sys.executable, str(HERE / "gpu_refresh.py"), str(REFRESH_ROUNDS)],
        env={**os.environ, "LD_LIBRARY_PATH": str(scratch)},
        stdout=subprocess.PIPE,
        check=True,
    )
    yield figure("refresh_8gpu_cpu", json.loads(done.stdout), "s", 0.010)


def scrapes(scratch: Path) -> Iterator[Figure]:
    """Measure scrapes of ten thousand series, alone and beside idle clients."""
    certificate, web_config = write_certificate(scratch)
    context = ssl.create_default_context(cafile=str(certificate))
    with server() as (url, pid), server(str(web_config)) as (tls_url, _):
        plain, secure = Scraper(url), Scraper(tls_url, context)
        conditions: dict[str, Callable[[], float]] = {
            "alone": lambda: p99_s(plain),
            "idle": lambda: p99_s(plain, url, IDLE_CONNECTIONS),
            "tls": lambda: p99_s(secure),
            "handshake": lambda: p99_s(secure, tls_url, IDLE_HANDSHAKES),
        }
        for scraper in (plain, secure):
            for _ in range(SCRAPES):
                scraper.scrape_s()
        rounds: dict[str, list[float]] = {name: [] for name in conditions}
        for n in range(SCRAPE_ROUNDS):
            order = list(conditions)
            for name in order if n % 2 else reversed(order):
                rounds[name].append(conditions[name]())
        yield figure("scrape_10k_series_p99", rounds["alone"], "s", 0.002)
        yield figure("scrape_10k_series_tls_p99", rounds["tls"], "s", None)
        name = "scrape_p99_with_200_idle_connections_ratio"
        yield ratio_figure(name, rounds["idle"], rounds["alone"], 2)
        name = "scrape_p99_with_idle_tls_handshake_ratio"
        yield ratio_figure(name, rounds["handshake"], rounds["tls"], 2)
        yield Figure("rss", most_rss_bytes(pid), "bytes", 125829120)
        plain.close()
        secure.close()


def p99_s(scraper: Scraper, url: str = "", idle: int = 0) -> float:
    """Return the 99th percentile of scrapes while ``idle`` connections say nothing."""
    with connected(url, idle) if idle else contextlib.nullcontext():
        took_s = []
        for _ in range(SCRAPES):
            time.sleep(SCRAPE_PERIOD_S)
            took_s.append(scraper.scrape_s())
        return quantile(took_s, 0.99)


@contextlib.contextmanager
def server(*args: str) -> Iterator[tuple[str, int]]:
    """Run the served process; yield its URL and process id."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / "exporter_server.py"), *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        if process.stdout is None:
            raise RuntimeError("no output to read the URL from")
        yield process.stdout.readline().strip(), process.pid
    finally:
        process.communicate(timeout=30)


if __name__ == "__main__":
    sys.exit(main())
