"""What the probe counted, against what the client and the engine's own log and metrics say."""

import re
from collections import Counter
from typing import Any

import pytest

pytestmark = pytest.mark.vllm

LAYOUTS = pytest.mark.parametrize("engine", ["a", "b"], ids=["worker-inside", "worker-apart"])


@LAYOUTS
def test_requests_are_those_the_client_sent(suite: Any, engine: str) -> None:
    tally = suite.tallies[engine]
    assert tally.rise("finished", "finished") == tally.completed
    assert tally.rise("first_schedules") == tally.completed


@LAYOUTS
def test_generated_tokens_are_those_the_client_got(suite: Any, engine: str) -> None:
    tally = suite.tallies[engine]
    assert tally.rise("generated_tokens") == tally.completion_tokens


@LAYOUTS
def test_prefill_is_the_clients_prompts_and_what_was_recomputed(suite: Any, engine: str) -> None:
    tally = suite.tallies[engine]
    first_time = tally.rise("prefill_tokens") - tally.rise("recomputed_tokens")
    assert first_time + tally.rise("cached_tokens") == tally.prompt_tokens


@LAYOUTS
def test_preemptions_are_those_of_vllms_own_counter(suite: Any, engine: str) -> None:
    tally = suite.tallies[engine]
    # Once all is served and nothing was aborted, vLLM's counter has caught up. Its log says none
    # of them: the interval's count is reset before it is printed.
    ours = sum(tally.after["preemptions"].values())
    native = re.search(
        r"^vllm:num_preemptions_total\{.*\} (\S+)$", tally.metrics_after, re.MULTILINE
    )
    assert native is not None
    assert ours == float(native[1]) > 0


@LAYOUTS
def test_no_more_is_recomputed_than_was_lost(suite: Any, engine: str) -> None:
    tally = suite.tallies[engine]
    assert 0 < tally.rise("recomputed_tokens") <= tally.rise("preempted_tokens")


@LAYOUTS
def test_adapters_were_found_where_a_hand_count_puts_them(suite: Any, engine: str) -> None:
    tally = suite.tallies[engine]
    risen = {tier: tally.rise("lora", "requests", tier) for tier in ("gpu", "cpu", "disk")}
    assert risen == {"gpu": 3, "cpu": 3, "disk": 3}


@LAYOUTS
def test_loads_are_those_of_the_engines_own_log(suite: Any, engine: str) -> None:
    tally = suite.tallies[engine]
    from_disk = len(tally.logged(r"Adding lora\. Model id"))
    moved = len(tally.logged(r"Activating LoRA\. int id"))
    assert tally.rise("lora", "loads", "disk") == from_disk == 3
    assert tally.rise("lora", "loads", "cpu") == moved - from_disk == 3
    assert tally.rise("lora", "load_seconds", "disk") > 0


@LAYOUTS
def test_resident_adapters_are_the_last_used(suite: Any, engine: str) -> None:
    assert suite.tallies[engine].after["lora"]["resident"] == {"ad0": "cpu", "ad2": "gpu"}


def test_both_layouts_give_the_same_figures(suite: Any) -> None:
    a, b = (suite.tallies[engine] for engine in ("a", "b"))
    for path in (
        ("finished", "finished"),
        ("first_schedules",),
        ("generated_tokens",),
        ("lora", "requests", "gpu"),
        ("lora", "requests", "cpu"),
        ("lora", "requests", "disk"),
        ("lora", "loads", "cpu"),
        ("lora", "loads", "disk"),
    ):
        assert a.rise(*path) == b.rise(*path), path
    assert a.after["capabilities"] == b.after["capabilities"]
    assert all(a.after["capabilities"].values())


@LAYOUTS
def test_idle_pool_is_all_free_and_without_drift(suite: Any, engine: str) -> None:
    (kv,) = suite.tallies[engine].after["kv"]
    assert (kv["live"], kv["slack"], kv["held"]) == (0, 0, 0)
    assert kv["evictable"] + kv["clean"] == kv["blocks"] == 31
    assert kv["census"] is None or kv["census"]["drift"] == 0


def test_layouts_are_really_different(suite: Any) -> None:
    printed = Counter(
        engine for engine in ("a", "b") if re.search(r"\bWorker\b.* pid=", suite.log(engine))
    )
    assert printed == {"b": 1}
