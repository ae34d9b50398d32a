"""The whole path, running: two real vLLM engines with the probe, front door, exporter.

Engine a keeps its worker inside the EngineCore, engine b has it in a process of its own: vLLM's
two layouts. They boot once for all tests here.
"""

import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

COMMAND = [sys.executable, "-m", "vramscope.exporters.cli"]
FLAGS = [
    *("--enforce-eager", "--dtype", "float32", "--max-model-len", "512", "--max-num-seqs", "16"),
    *("--block-size", "32", "--num-gpu-blocks-override", "32"),
    *("--enable-lora", "--max-loras", "1", "--max-cpu-loras", "2", "--max-lora-rank", "8"),
]
SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_LOGGING_LEVEL": "DEBUG",  # says each adapter load
    "VLLM_NO_USAGE_STATS": "1",
}
LAYOUTS = {"a": {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}, "b": {}}
BOOT_S = 240.0

# ad0, ad1, ad2 were loaded at start in this order: with room for two in CPU memory and one in
# GPU memory, ad1 and ad2 are in CPU memory and ad2 in GPU memory. Least recently used goes.
VISITS = (
    ("ad2", "gpu"),
    ("ad1", "cpu"),
    ("ad1", "gpu"),
    ("ad0", "disk"),  # ad2 leaves
    ("ad1", "cpu"),
    ("ad2", "disk"),  # ad0 leaves
    ("ad0", "disk"),  # ad1 leaves
    ("ad0", "gpu"),
    ("tiny", None),
    ("ad2", "cpu"),
)


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


def complete(url: str, **body: Any) -> dict[str, Any]:
    """Send one completion; return the answer."""
    request = urllib.request.Request(
        f"{url}/v1/completions",
        json.dumps({"temperature": 0, "ignore_eos": True, **body}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        result: dict[str, Any] = json.loads(answer.read())
        return result


def wait_for(what: str, found: Callable[[], Any], within_s: float) -> Any:
    """Return what ``found`` returns once it is true."""
    deadline_s = time.monotonic() + within_s
    while not (value := found()):
        assert time.monotonic() < deadline_s, f"no {what} within {within_s} s"
        time.sleep(0.1)
    return value


def descendants(pid: int) -> set[int]:
    """Return the process and all below it, by /proc."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(after_name[1]), []).append(int(stat.parent.name))
    found, todo = set(), [pid]
    while todo:
        one = todo.pop()
        found.add(one)
        todo += children.get(one, [])
    return found


def is_running(pid: int) -> bool:
    """Whether a process lives; one that is only waiting to be reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@dataclass
class Suite:
    """What runs, and where."""

    front_door: str
    admin: str
    exporter: str
    run_dir: Path
    engines: dict[str, str]
    logs: dict[str, Path]
    serve: subprocess.Popen[str]
    tallies: dict[str, "Tally"] = field(default_factory=dict)

    def signals(self, engine: str) -> dict[str, Any]:
        """Return the engine's entry of /signals, once it has nothing left to do."""

        def idle() -> Any:
            entries = json.loads(get(f"{self.exporter}/signals"))["engines"]
            (entry,) = [entry for entry in entries if entry["engine"] == engine]
            return entry if entry["state"] == "idle" else None

        found: dict[str, Any] = wait_for(f"idle engine {engine}", idle, 60)
        return found

    def log(self, engine: str) -> str:
        """Return what the engine has printed."""
        return self.logs[engine].read_text()


@dataclass
class Tally:
    """What the client of one engine counted, and what was seen before and after."""

    before: dict[str, Any]
    after: dict[str, Any] = field(default_factory=dict)
    log_before: str = ""
    log_after: str = ""
    metrics_after: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    completed: int = 0

    def take(self, answer: dict[str, Any]) -> None:
        self.prompt_tokens += answer["usage"]["prompt_tokens"]
        self.completion_tokens += answer["usage"]["completion_tokens"]
        self.completed += 1

    def rise(self, *path: str) -> float:
        """Return by how much a number of /signals rose."""
        before, after = self.before, self.after
        for key in path:
            before, after = before[key], after[key]
        return after - before  # type: ignore[operator,no-any-return]

    def logged(self, pattern: str) -> list[str]:
        """Return what a pattern finds in the lines the engine printed in between."""
        return re.findall(pattern, self.log_after[len(self.log_before) :])


@pytest.fixture(scope="session")
def suite(
    tiny_model: Path, tiny_adapters: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Suite]:
    folder = tmp_path_factory.mktemp("suite")
    run_dir = folder / "run"
    config = {
        "engines": [
            {
                "name": name,
                "model": str(tiny_model),
                "served_name": "tiny",
                "args": FLAGS,
                "env": {**SETTINGS, **layout},
                "adapters": {adapter: str(path) for adapter, path in tiny_adapters.items()},
            }
            for name, layout in LAYOUTS.items()
        ],
        "front_door": {"port": 0},
        "admin": {"port": 0},
        "run_dir": str(run_dir),
        "log_dir": str(folder / "logs"),
    }
    (folder / "vramscope.yaml").write_text(yaml.safe_dump(config))
    serve = start(["serve", "-c", "vramscope.yaml"], folder)
    export = None
    family: set[int] = set()
    try:
        ready = first_line(serve, "ready:", BOOT_S)
        family = descendants(serve.pid)
        front_door, admin = re.findall(r"http://\S+?(?=[,\s]|$)", ready)
        export = start(["export", "--listen", "127.0.0.1:0", "--run-dir", str(run_dir)], folder)
        exporter = first_line(export, "vramscope export:", 30).split()[-1].removesuffix("/metrics")
        engines = json.loads(get(f"{admin}/debug/engines"))["engines"]
        made = Suite(
            front_door=front_door,
            admin=admin,
            exporter=exporter,
            run_dir=run_dir,
            engines={e["name"]: f"http://127.0.0.1:{e['port']}" for e in engines},
            logs={e["name"]: Path(e["log"]) for e in engines},
            serve=serve,
        )
        # Before any test: the first visits find the adapters as the start left them.
        send_load(made)
        yield made
        serve.send_signal(signal.SIGINT)
        assert serve.wait(90) == 0
        export.send_signal(signal.SIGTERM)
        assert export.wait(30) == 0
    finally:
        for process in (serve, export):
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(90)
            if process is not None and process.stdout is not None:
                process.stdout.close()
    assert list(run_dir.iterdir()) == [], "records left behind"
    assert {pid for pid in family if is_running(pid)} == set(), "processes left behind"


def start(command: list[str], folder: Path) -> subprocess.Popen[str]:
    """Start a command of the suite, its output in a file beside its stdout pipe."""
    with (folder / f"{command[0]}.err").open("w") as errors:
        return subprocess.Popen(
            [*COMMAND, *command],
            cwd=folder,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )


def first_line(process: subprocess.Popen[str], begins: str, within_s: float) -> str:
    """Return the first line of stdout, which must begin so."""
    assert process.stdout is not None
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        line = pool.submit(process.stdout.readline).result(within_s)
    assert line.startswith(begins), f"got {line!r}, exit status {process.poll()}"
    return line.strip()


def send_load(suite: Suite) -> None:
    """Have each engine serve the same load, sent to it directly, and keep the tallies."""
    for engine, url in suite.engines.items():
        tally = Tally(suite.signals(engine), log_before=suite.log(engine))
        for number, (model, _) in enumerate(VISITS):
            tally.take(complete(url, model=model, prompt=f"visit {number}", max_tokens=4))
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = pool.map(
                lambda k, url=url: complete(
                    url, model="tiny", prompt=f"{k} " + "fill the pool " * 2, max_tokens=200
                ),
                range(16),
            )
            for answer in answers:
                tally.take(answer)
        tally.after = suite.signals(engine)
        tally.metrics_after = get(f"{url}/metrics")
        tally.log_after = suite.log(engine)
        suite.tallies[engine] = tally
