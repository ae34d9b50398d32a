"""Measures the probe: ``make bench-probe``. Writes bench-results/probe.json.

Each step without the probe is compared with the same step with it; A/A compares two without, so
what is smaller than its spread is noise. The load is in ``modelless.Load``: steady decode on
a full pool of 100,000 blocks (each new block evicts another), a request that comes for each that
finishes, long prompts prefilled in chunks.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from figures import Figure, quantile, table, write
from read_engines import read_engines

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RESULTS = ROOT / "bench-results" / "probe.json"

STEPS = {1: 3000, 64: 2000, 256: 1500}
"""By batch."""
TARGET_S = 0.000010
ENGINE_STEPS = 1200
TARGET_RATIO = 1.02
VISIBLE_STEPS = 4000
TARGET_VISIBLE_S = 0.005

# One thread, one process: the settings under which vLLM's CPU build is quick.
SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
}


def main() -> int:
    """Measure, print, write."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(dir=_memory()) as scratch:
        folder = Path(scratch)
        for batch, steps in STEPS.items():
            figures += step_added(batch, steps, folder)
        figures += engine_ratio(folder)
        seen_s = run("visible.py", str(VISIBLE_STEPS), folder=folder)
        figures.append(Figure("record_visible_p99", quantile(seen_s, 0.99), "s", TARGET_VISIBLE_S))
        figures += read_engines(folder / "engines")
    sys.stdout.write(table(figures))
    write(figures, RESULTS)
    sys.stdout.write(f"\nwritten: {RESULTS.relative_to(ROOT)}\n")
    return 0


def step_added(batch: int, steps: int, folder: Path) -> Iterator[Figure]:
    """Yield what the probe adds to a step: the median, and what the median does not show."""
    found = run("step_added.py", str(batch), str(steps), folder=folder)
    hooks_s, steps_s = (
        {name: [step[which] for step in by_step] for name, by_step in found["steps"].items()}
        for which in (0, 1)
    )
    added_s = _differences(hooks_s["bare"], hooks_s["probed"])
    spread_s = abs(median(_differences(hooks_s["bare"], hooks_s["bare_again"])))
    name = f"step_added_batch{batch}_100k_blocks"
    value_s = median(added_s)
    yield Figure(name, value_s, "s", TARGET_S, spread=spread_s / value_s)
    # With scans: here they take a larger share of a step than where a step waits for a GPU.
    yield Figure(f"{name}_mean", fmean(added_s), "s", None)
    yield Figure(f"{name}_p99", quantile(added_s, 0.99), "s", None)
    yield Figure(f"{name}_aa_spread", spread_s, "s", None)
    whole = f"step_batch{batch}"
    differences_s = _differences(steps_s["bare"], steps_s["probed"])
    aa_s = _differences(steps_s["bare"], steps_s["bare_again"])
    yield Figure(f"{whole}_without_probe", median(steps_s["bare"]), "s", None)
    yield Figure(f"{whole}_difference", median(differences_s), "s", None)
    yield Figure(f"{whole}_difference_aa_spread", abs(median(aa_s)), "s", None)
    yield Figure(f"pwrite_alone_batch{batch}", found["pwrite_s"], "s", None)
    own = found["hooks"]["bare"]
    for hook, (calls, hook_s) in found["hooks"]["probed"].items():
        yield Figure(f"hook_batch{batch}_{hook}_calls", calls, "per step", None)
        yield Figure(f"hook_batch{batch}_{hook}_mean", hook_s - own[hook][1], "s", None)
    for part, scan_s in found["scans_s"].items():
        yield Figure(f"scan_batch{batch}_{part}", scan_s, "s", None)


def engine_ratio(folder: Path) -> Iterator[Figure]:
    """Yield the ratio of whole steps of real engines, and how far two of a kind lie apart."""
    took_s = run("engine_ratio.py", str(ENGINE_STEPS), folder=folder)
    bare_s, probed_s = (took_s[kind] + took_s[f"{kind}_again"] for kind in ("bare", "probed"))
    ratio = _ratio(probed_s, bare_s)
    spread = max(
        abs(_ratio(took_s[f"{kind}_again"], took_s[kind]) - 1) for kind in ("bare", "probed")
    )
    target = max(TARGET_RATIO, 1 + spread)
    yield Figure("engine_step_with_probe_ratio", ratio, "ratio", target, spread=spread)
    yield Figure("engine_step_aa_spread", spread, "ratio", None)
    yield Figure("engine_step_without_probe", median(bare_s), "s", None)


def run(program: str, *args: str, folder: Path) -> Any:
    """Run a program of this folder in an environment of its own; return what it prints."""
    done = subprocess.run(
        [sys.executable, str(HERE / program), *args, str(folder)],
        env={**os.environ, **SETTINGS},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{program} ended with {done.returncode}:\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _ratio(took_s: Sequence[float], base_s: Sequence[float]) -> float:
    return median(a / b for a, b in zip(took_s, base_s, strict=True))


def _differences(base_s: Sequence[float], took_s: Sequence[float]) -> list[float]:
    return [b - a for a, b in zip(base_s, took_s, strict=True)]


def _memory() -> Path | None:
    """Return a file system in memory, as /run is, where there is one."""
    shm = Path("/dev/shm")  # noqa: S108 (a fresh folder is made in it)
    return shm if shm.is_dir() and os.access(shm, os.W_OK) else None


if __name__ == "__main__":
    sys.exit(main())
