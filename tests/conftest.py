"""What every test may ask for, and the rule that CI skips nothing in silence."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from vramscope.demo.adapters import make_adapters
from vramscope.demo.tiny_model import make_tiny_model

TESTS = Path(__file__).parent
UNPACKED = TESTS.parent / ".deps" / "bin"
"""Where `make deps` puts programs."""
ALLOWED_SKIPS = ("needs a GPU",)
"""How the reason of a skip begins that CI accepts; any other is a missing dependency."""

Golden = Callable[[str, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite tests/golden from what tests produce"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    fail_a_skip_in_ci(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    fail_a_skip_in_ci(report)
    return report


def fail_a_skip_in_ci(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure when ``CI`` is set and its reason is not an allowed one."""
    if not report.skipped or hasattr(report, "wasxfail") or not os.environ.get("CI"):
        return
    assert isinstance(report.longrepr, tuple)  # a skip's place and reason
    path, line, said = report.longrepr
    reason = said.removeprefix("Skipped: ")
    if not reason.startswith(ALLOWED_SKIPS):
        report.outcome = "failed"
        report.longrepr = f"{path}:{line}: CI skips nothing but {ALLOWED_SKIPS}: {reason}"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares text with a file of tests/golden; promtool checks those that end in .prom."""

    def check(name: str, text: str) -> None:
        file = TESTS / "golden" / name
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        assert file.is_file(), f"no {file}: make it with pytest --update-golden and review it"
        assert text == file.read_text(), f"differs from {file}: pytest --update-golden, then review"
        if file.suffix == ".prom":
            lint(text)

    return check


def lint(page: str) -> None:
    """Fail when promtool finds fault with a metrics page."""
    promtool = find("promtool")
    if promtool is None:
        assert not os.environ.get("CI"), "CI has no promtool: run make deps"
        return
    done = subprocess.run(
        [promtool, "check", "metrics"], input=page, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def promtool() -> str:
    """The path of promtool."""
    return need("promtool")


@pytest.fixture(scope="session")
def prometheus() -> str:
    """The path of prometheus."""
    return need("prometheus")


def find(program: str) -> str | None:
    """Return the path of a program that make deps unpacked or PATH has."""
    return shutil.which(program, path=os.pathsep.join([str(UNPACKED), os.environ.get("PATH", "")]))


def need(program: str) -> str:
    """Return the path of a program; skip the test where there is none."""
    path = find(program)
    if path is None:
        pytest.skip(f"no {program} here: run make deps")
    return path


Query = Callable[[str], list[dict[str, Any]]]
"""Asks PromQL; returns the vector."""


@pytest.fixture(scope="module")
def scrape(
    prometheus: str,
    free_port: Callable[[], int],
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[Callable[[dict[str, str]], Query]]:
    """Starts a real Prometheus, with its own port and folder, on targets by job.

    Returns once each target has been scraped.
    """
    with ExitStack() as started:

        def start(targets: dict[str, str]) -> Query:
            folder = tmp_path_factory.mktemp("prometheus")
            config = {
                "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
                "scrape_configs": [
                    {
                        "job_name": job,
                        "static_configs": [{"targets": [url.removeprefix("http://")]}],
                    }
                    for job, url in targets.items()
                ],
            }
            (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
            address = f"127.0.0.1:{free_port()}"
            log = started.enter_context((folder / "log").open("w"))
            process = subprocess.Popen(
                [
                    prometheus,
                    f"--config.file={folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    f"--web.listen-address={address}",
                ],
                stdout=log,
                stderr=log,
            )
            started.callback(process.wait, 30)
            started.callback(process.terminate)

            def query(expression: str) -> list[dict[str, Any]]:
                asked = urllib.parse.urlencode({"query": expression})
                try:
                    url = f"http://{address}/api/v1/query?{asked}"
                    with urllib.request.urlopen(url, timeout=10) as answer:
                        result: list[dict[str, Any]] = json.loads(answer.read())["data"]["result"]
                        return result
                except OSError:
                    return []  # not listening yet

            deadline_s = time.monotonic() + 60
            while len(query("up == 1")) < len(targets):
                assert time.monotonic() < deadline_s, query("up")
                time.sleep(0.2)
            return query

        yield start


# One process, one thread: the settings under which vLLM's CPU build is quick. Every step scanned.
VLLM_SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "VRAMSCOPE_SCAN_PERIOD_S": "0",
}


@pytest.fixture(scope="session")
def vllm_environment() -> dict[str, str]:
    """This environment, with the settings under which a real vLLM is quick."""
    return {**os.environ, **VLLM_SETTINGS}


@pytest.fixture(scope="session")
def vllm_program(vllm_environment: dict[str, str]) -> Callable[..., str]:
    """Runs a program that fills its process with a real vLLM; returns what it printed.

    Keywords are settings of its environment.
    """

    def run(program: Path, *arguments: object, **settings: str) -> str:
        done = subprocess.run(
            [sys.executable, str(program), *map(str, arguments)],
            env={**vllm_environment, **settings},
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout

    return run


@pytest.fixture(scope="session")
def free_port() -> Callable[[], int]:
    """Returns loopback ports that nothing listens on, none of them twice."""
    given: set[int] = set()

    def choose() -> int:
        while True:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port: int = probe.getsockname()[1]
            if port not in given:
                given.add(port)
                return port

    return choose


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama that vLLM serves with no download."""
    return make_tiny_model(tmp_path_factory.mktemp("tiny") / "tiny")


@pytest.fixture(scope="session")
def tiny_adapters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Three LoRA adapters for it: ad0, ad1, ad2."""
    return make_adapters(tmp_path_factory.mktemp("adapters"), 3)
