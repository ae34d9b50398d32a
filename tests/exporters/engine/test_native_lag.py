"""Why preemptions are counted inside: vLLM's own counter beside ours, in a real engine.

vLLM counts a preemption when its request next makes a token: late, and never if its client has
left by then.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "programs" / "native_lag.py"

pytestmark = pytest.mark.vllm


@pytest.fixture(scope="module")
def counted(
    tiny_model: Path, tmp_path_factory: pytest.TempPathFactory, vllm_program: Callable[..., str]
) -> dict[str, Any]:
    """What the program counted: after each step (independent, probe, native)."""
    folder = tmp_path_factory.mktemp("lag") / "run"
    # The scan period as users have it: the counts compared are those of each step.
    settings = {"VRAMSCOPE_ENGINE": "lag", "VRAMSCOPE_SCAN_PERIOD_S": "0.15"}
    said = vllm_program(PROGRAM, tiny_model, VRAMSCOPE_RUN_DIR=str(folder), **settings)
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
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
