"""Why preemptions are counted inside: vLLM's own counter beside ours, in a real engine.

vLLM counts a preemption when its request next makes a token: late, and never if its client has
left by then.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "programs" / "native_lag.py"
# One process, one thread: the settings under which vLLM's CPU build is quick.
SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "VRAMSCOPE_ENGINE": "lag",
}

pytestmark = pytest.mark.vllm


@pytest.fixture(scope="module")
def counted(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program counted: after each step (independent, probe, native)."""
    folder = tmp_path_factory.mktemp("lag") / "run"
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tiny_model)],
        env={**os.environ, **SETTINGS, "VRAMSCOPE_RUN_DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_probe_knows_each_preemption_after_the_step_it_happened_in(counted: dict[str, Any]) -> None:
    assert [(true, ours) for true, ours, _ in counted["history"] if true != ours] == []
    assert counted["end"][0] > counted["aborted"] > 0


def test_native_counter_shows_none_while_requests_wait_preempted(counted: dict[str, Any]) -> None:
    before_any = [true for true, _, native in counted["history"] if native == 0]
    assert max(before_any) >= counted["aborted"]


def test_native_counter_never_learns_of_those_whose_clients_left(counted: dict[str, Any]) -> None:
    true, ours, native = counted["end"]
    assert ours == true
    assert native == true - counted["aborted"]
