"""Engines of more than one rank, for real: each rank has its record, and the ranks agree."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vramscope.exporters.engine.host import HostRecords
from vramscope.exporters.signals.samples import EngineSample

PROGRAM = Path(__file__).parent / "programs" / "ranks.py"
APART = {"VLLM_ENABLE_V1_MULTIPROCESSING": "1"}  # vLLM's default: each rank its process
FLAGS = ["--enforce-eager", "--dtype=float32", "--max-model-len=256", "--block-size=32"]

pytestmark = pytest.mark.vllm


@pytest.fixture(scope="module")
def tensor_parallel(
    tiny_model: Path,
    tiny_adapters: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
    vllm_program: Callable[..., str],
) -> dict[str, Any]:
    """What a reader saw of an EngineCore and two workers, each a process of its own."""
    folder = tmp_path_factory.mktemp("tp")
    settings = {"VRAMSCOPE_ENGINE": "tp", **APART, "VRAMSCOPE_RUN_DIR": str(folder)}
    said = vllm_program(PROGRAM, tiny_model, tiny_adapters["ad0"].parent, **settings)
    (found,) = [line for line in said.splitlines() if line.startswith('{"records"')]
    result: dict[str, Any] = json.loads(found)
    return result


def test_each_tensor_parallel_rank_has_a_record_of_its_own(tensor_parallel: Any) -> None:
    records = tensor_parallel["records"]
    assert [(r["role"], r["rank"], r["tp_rank"]) for r in records] == [
        ("engine", None, None),
        ("worker", 0, 0),
        ("worker", 1, 1),
    ]
    assert len({record["pid"] for record in records}) == 3


def test_counts_of_both_ranks_are_the_same(tensor_parallel: Any) -> None:
    counts = [
        {
            name: value
            for name, value in record.items()
            if name.startswith(("lora_requests_", "lora_loads_", "lora_evictions_"))
        }
        for record in tensor_parallel["records"][1:]
    ]
    assert counts[0] == counts[1]
    assert counts[0]["lora_loads_disk"] == 2  # ad0, ad1; ad0 again comes from CPU memory
    assert tensor_parallel["sample"]["lora"] == {"cpu": 1, "disk": 2}


def test_kv_pool_is_split_over_the_ranks(tensor_parallel: Any) -> None:
    whole = 2 * 2 * 2 * 32 * 32 * 32 * 4  # layers, K and V, heads, head, tokens, blocks, fp32
    pools = [record["vram_kv_pool_bytes"] for record in tensor_parallel["records"][1:]]
    assert pools == [whole / 2, whole / 2]


def test_exporter_knows_the_ranks_from_their_records(tensor_parallel: Any) -> None:
    sample = tensor_parallel["sample"]
    assert (sample["error"], sample["ranks"]) == (None, 2)
    assert (sample["processes"], sample["vram_ranks"]) == ([0, 0, 1], [0, 1])


@pytest.fixture(scope="module")
def data_parallel(
    tiny_model: Path,
    tmp_path_factory: pytest.TempPathFactory,
    free_port: Callable[[], int],
    vllm_environment: dict[str, str],
) -> Iterator[tuple[str, HostRecords]]:
    """An engine of two data-parallel ranks behind two API servers."""
    folder, port = tmp_path_factory.mktemp("dp"), free_port()
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model"]
    command += [str(tiny_model), "--served-model-name=tiny", *FLAGS, "--num-gpu-blocks-override=32"]
    command += ["--data-parallel-size=2", "--api-server-count=2", "--host=127.0.0.1"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [*command, f"--port={port}"],
            env={
                **vllm_environment,
                **APART,
                "VRAMSCOPE_RUN_DIR": str(folder),
                "VRAMSCOPE_ENGINE": "dp",
            },
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    records = HostRecords(folder)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline_s = time.monotonic() + 240
        while not answers(f"{url}/health"):
            assert server.poll() is None, (folder / "log").read_text()[-4000:]
            assert time.monotonic() < deadline_s, (folder / "log").read_text()[-4000:]
            time.sleep(0.5)
        yield url, records
        server.send_signal(signal.SIGINT)
        server.wait(60)
        assert samples(records) == []
    finally:
        records.close()
        with contextlib.suppress(ProcessLookupError):  # all gone, as it should be
            os.killpg(server.pid, signal.SIGKILL)
        server.wait(30)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def samples(records: HostRecords) -> list[EngineSample]:
    return [reading.sample for reading in records.read() if reading.sample is not None]


def test_data_parallel_ranks_are_told_apart_and_share_the_work(data_parallel: Any) -> None:
    url, records = data_parallel
    body = {"model": "tiny", "prompt": "hello", "max_tokens": 4, "temperature": 0}
    for _ in range(8):
        request = urllib.request.Request(
            f"{url}/v1/completions",
            json.dumps({**body, "ignore_eos": True}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 200
    deadline_s = time.monotonic() + 10
    while sum(sample.finished["finished"] for sample in samples(records)) < 8:
        assert time.monotonic() < deadline_s
        time.sleep(0.1)
    found = samples(records)
    assert sorted((sample.engine, sample.dp_rank) for sample in found) == [("dp", 0), ("dp", 1)]
    assert all(sample.finished["finished"] > 0 for sample in found)
    assert [len(sample.vram) for sample in found] == [1, 1]
