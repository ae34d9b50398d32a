"""A real engine whose probe breaks in every way there is: the answers stay the same."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "programs" / "safe.py"
UP = 'vramscope_source_up{source="engine:safe"} 1.0'
DOWN = 'vramscope_source_up{source="engine:safe"} 0.0'

pytestmark = pytest.mark.vllm

Run = Any


@pytest.fixture(scope="module")
def run(
    tiny_model: Path,
    tiny_adapters: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
    vllm_program: Callable[..., str],
) -> Run:
    """Runs the program in an environment of its own; returns what it found."""

    def start(*what: str, **settings: str) -> dict[str, Any]:
        folder = tmp_path_factory.mktemp("safe") / "run"
        settings = {"VRAMSCOPE_ENGINE": "safe", "VRAMSCOPE_RUN_DIR": str(folder), **settings}
        said = vllm_program(PROGRAM, tiny_model, tiny_adapters["ad0"].parent, *what, **settings)
        found: dict[str, Any] = json.loads(said.splitlines()[-1])
        return found

    return start


@pytest.fixture(scope="module")
def bare(run: Run) -> dict[str, list[int]]:
    """The answers of an engine without the probe."""
    found: dict[str, list[int]] = run("none such", VRAMSCOPE_PROBE="0")["answers"]
    assert len(found) == 12
    return found


@pytest.fixture(scope="module")
def broken(run: Run) -> dict[str, Any]:
    """What the program found with every fault in turn."""
    found: dict[str, Any] = run()
    return found


NOT_HERE = (".shutdown", ".capture_model")


def off(said: dict[str, Any]) -> list[str]:
    """Return the capabilities that the page says are off."""
    return [line for line in said["page"] if "capability" in line and line.endswith(" 0.0")]


def test_answers_are_the_same_whichever_hook_raises(
    bare: dict[str, list[int]], broken: dict[str, Any]
) -> None:
    assert broken["answers"] == bare
    assert [hook for hook, said in broken["hooks"].items() if said["answers"] != bare] == []


def test_each_hook_did_raise(broken: dict[str, Any]) -> None:
    """All but those of an engine's start, which have a test of their own, its end, and a GPU."""
    quiet = {hook for hook, said in broken["hooks"].items() if not said["fired"]}
    assert len(broken["hooks"]) > len(quiet) + 20
    assert [
        hook for hook in quiet - set(broken["start"]) if not hook.split(": ")[0].endswith(NOT_HERE)
    ] == []


def test_answers_are_the_same_when_a_hook_of_the_start_raises(
    bare: dict[str, list[int]], broken: dict[str, Any], run: Run
) -> None:
    of_the_start = [hook for hook in broken["start"] if not broken["hooks"][hook]["fired"]]
    assert of_the_start
    for hook in of_the_start:
        found = run(hook)
        assert found["fired"] == [hook]
        assert found["answers"] == bare


def test_hook_that_raises_switches_off_a_capability_that_says_so(broken: dict[str, Any]) -> None:
    silent = {hook for hook, said in broken["hooks"].items() if said["fired"] and not off(said)}
    assert silent == set()


def test_hook_of_the_scheduler_that_raises_is_the_reason_the_source_is_down(
    broken: dict[str, Any],
) -> None:
    for hook, said in broken["hooks"].items():
        if said["fired"] and hook.startswith(("Scheduler.", "BlockPool.")):
            method = hook.split(":")[0].split(".")[1]
            assert DOWN in said["page"]
            assert said["errors"][0].endswith(f"{method}: ZeroDivisionError: injected by the test")


DISASTERS = {
    # name -> what the page says of the engine, and a part of the reason
    "full_disk": (None, None),
    "file_size_limit": (DOWN, "update_from_output: OSError: [Errno 27] File too large"),
    "full_disk_at_start": (None, None),
    "read_only_folder": (None, None),
    "truncated_record": (None, "truncated: "),
    "killed_reader": (UP, None),
    "vanished_folder": (None, "no such folder"),
}


@pytest.mark.parametrize("disaster", DISASTERS)
def test_answers_are_the_same_and_the_page_is_honest_after(
    bare: dict[str, list[int]], broken: dict[str, Any], disaster: str
) -> None:
    said = broken["disasters"][disaster]
    assert said["answers"] == bare
    line, reason = DISASTERS[disaster]
    assert [one for one in said["page"] if one in (UP, DOWN)] == ([line] if line else [])
    if reason is None:
        assert said["errors"] == []
    else:
        assert reason in said["errors"][0]
    # What cannot be known is absent: no engine, rather than one that seems to be hung.
    assert bool(off(said)) == (line == DOWN)


def test_every_disaster_is_tested(broken: dict[str, Any]) -> None:
    assert broken["disasters"].keys() == DISASTERS.keys()


def test_engine_paused_with_requests_in_it_is_idle(broken: dict[str, Any]) -> None:
    states = [
        [state for state in ("busy", "idle", "hung") if is_in(state, page)]
        for page in broken["paused"]
    ]
    assert states == [["busy"], ["idle"], ["busy"]]


def is_in(state: str, page: list[str]) -> bool:
    """Whether a page says that the engine is in a state."""
    name = "vramscope_engine_state{"
    return any(
        line.startswith(name) and f'state="{state}"' in line and line.endswith(" 1.0")
        for line in page
    )
