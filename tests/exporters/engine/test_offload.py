"""KV cache outside the GPU: the probe on a real scheduler and offloading manager, and its page.

vLLM's workers can't offload on a CPU, so what they would report is synthetic (see the program);
scheduler, connector, manager and their decisions are vLLM's own.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vramscope.exporters.engine.host import HostRecords
from vramscope.exporters.engine.probe.hooks import Guard
from vramscope.exporters.engine.probe.offload import SCAN_FIELDS, Offload
from vramscope.exporters.exporter import Exporter

PROGRAM = Path(__file__).parent / "programs" / "offload.py"
MOMENTS = ("stored", "loaded", "evicted", "pinned", "refused")


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("offload")
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder)],
        env={
            **os.environ,
            "HF_HUB_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "VRAMSCOPE_ENGINE": "offload",
            "VRAMSCOPE_RUN_DIR": str(folder / "run"),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.vllm
@pytest.mark.parametrize("moment", MOMENTS)
def test_lookups_and_hits_are_those_of_vllms_own_statistics(
    driven: dict[str, Any], moment: str
) -> None:
    seen = driven[moment]["offload"]
    native = driven[moment]["native"]
    assert seen["queried_tokens"] == native["queries"] > 0
    assert sum(seen["hit_tokens"].values()) == native["hits"]


@pytest.mark.vllm
@pytest.mark.parametrize(
    ("moment", "queried", "hits", "stores", "loads", "tier"),
    [
        # A prompt of 4 blocks of 16 and a token is stored.
        ("stored", 65, 0, 1, 0, {"cached": 4, "pinned": 0, "stored": 4, "loaded": 0}),
        # The same again, after the GPU's cache was reset: its 4 blocks are loaded.
        ("loaded", 130, 64, 1, 1, {"cached": 4, "pinned": 0, "stored": 4, "loaded": 4}),
        # Another of 6 blocks: 4 of the tier's 8 are free, so 2 are evicted.
        ("evicted", 227, 64, 2, 1, {"cached": 8, "pinned": 0, "stored": 10, "evicted": 2}),
        # Another of 6, whose transfer is not done: 6 evicted, 6 held.
        ("pinned", 324, 64, 2, 1, {"cached": 2, "pinned": 6, "stored": 10, "evicted": 8}),
        # Another of 4: only 2 could be evicted, so nothing is.
        ("refused", 389, 64, 2, 1, {"cached": 2, "pinned": 6, "stored": 10, "evicted": 8}),
    ],
)
def test_counts_are_those_of_a_hand_count(
    driven: dict[str, Any],
    moment: str,
    queried: int,
    hits: int,
    stores: int,
    loads: int,
    tier: dict[str, int],
) -> None:
    seen = driven[moment]["offload"]
    assert driven[moment]["error"] is None
    assert seen["connector"] == "OffloadingConnector"
    assert seen["queried_tokens"] == queried
    named = {"host": hits} if hits else {}
    assert seen["hit_tokens"] == {**named, "unspecified": 0}
    assert seen["moved_bytes"] == {"store": 1000 * stores, "load": 300 * loads}
    assert seen["moved_seconds"] == {"store": 0.25 * stores, "load": 0.5 * loads}
    assert seen["tier"] == seen["tier"] | tier | {"blocks": 8}
    assert (seen["tier"]["refused"] > 0) == (moment == "refused")


@pytest.mark.vllm
def test_all_that_vllms_own_connector_lets_be_seen_is_on(driven: dict[str, Any]) -> None:
    on = driven["stored"]["capabilities"]
    assert {name: on[name] for name in on if name.startswith("offload")} == {
        "offload": True,
        "offload_transfers": True,
        "offload_tier": True,
    }


class Connector:
    """A connector that nobody knows: it answers what each must."""

    def __init__(self, found: tuple[int | None, bool] = (32, False)) -> None:
        self.found = found

    def get_num_new_matched_tokens(self, *_: Any) -> tuple[int | None, bool]:
        return self.found

    def update_state_after_alloc(self, *_: Any) -> None:
        pass

    def get_kv_connector_stats(self) -> None:
        """Say nothing, as each does that keeps no statistics."""


def offload(connector: Any) -> Offload:
    def fail(error: str) -> None:
        raise AssertionError(error)

    return Offload(connector, Guard(fail))


def values(part: Offload) -> dict[str, float]:
    return dict(zip(SCAN_FIELDS, part.scan(0.0), strict=True))


def request(name: str = "r", tokens: int = 100, preemptions: int = 0) -> Any:
    return SimpleNamespace(request_id=name, num_tokens=tokens, num_preemptions=preemptions)


def test_unknown_connector_gives_lookups_and_hits_only() -> None:
    connector = Connector()
    part = offload(connector)
    connector.get_num_new_matched_tokens(request(), 16)
    connector.get_num_new_matched_tokens(request(), 16)  # no room at the first attempt
    connector.update_state_after_alloc(request(), None, 32)
    connector.update_state_after_alloc(request(), None, 0)  # the load has arrived
    seen = values(part)
    assert (seen["offload_queried_tokens"], seen["offload_hit_tokens"]) == (84, 32)
    assert seen["offload_tier_blocks"] == -1
    assert part.capabilities() == {
        "offload": True,
        "offload_transfers": False,
        "offload_tier": False,
    }


@pytest.mark.parametrize(
    ("found", "preemptions"), [((None, False), 0), ((32, False), 1)], ids=["not-yet", "resumed"]
)
def test_only_first_schedules_with_an_answer_count(
    found: tuple[int | None, bool], preemptions: int
) -> None:
    connector = Connector(found)
    part = offload(connector)
    connector.get_num_new_matched_tokens(request(preemptions=preemptions), 0)
    connector.update_state_after_alloc(request(preemptions=preemptions), None, 32)
    assert values(part)["offload_queried_tokens"] == 0


def test_request_that_left_before_it_was_admitted_is_forgotten() -> None:
    connector = Connector()
    part = offload(connector)
    connector.get_num_new_matched_tokens(request(), 0)
    part.leaving("r")
    connector.update_state_after_alloc(request(), None, 32)
    assert values(part)["offload_queried_tokens"] == 0


class Stats:
    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data


NEW = {"types": {}, "data": {"vllm:kv_offload_load_bytes": {(): 7}, "vllm:other": {(): 1}}}
OLD = {"CPU_to_GPU": [{"op_size": 5, "op_time": 0.5}, {"op_size": 2, "op_time": 0.25}]}


@pytest.mark.parametrize(
    "data",
    [NEW, OLD, {"OffloadingConnector": Stats(NEW), "Other": Stats({"x": 1})}],
    ids=["0.24-and-later", "0.16-to-0.23", "one-of-several-connectors"],
)
def test_transfers_of_each_form_that_vllm_had(data: dict[str, Any]) -> None:
    part = offload(Connector())
    said = SimpleNamespace(kv_connector_stats=Stats(data))
    part.computed(SimpleNamespace(kv_connector_output=said))
    assert values(part)["offload_load_bytes"] == 7
    part.computed(SimpleNamespace(kv_connector_output=None))
    assert values(part)["offload_load_bytes"] == 7


NOW_S = 1000.5
ON = {"steps": True, "offload": True, "offload_transfers": True, "offload_tier": True}
FIELDS = {
    "offload_queried_tokens": 640,
    "offload_hit_tokens": 160,
    "offload_hit_tokens_host": 96,
    "offload_hit_tokens_disk": 32,
    "offload_hit_tokens_p2p": 0,
    "offload_store_bytes": 4096,
    "offload_load_bytes": 1024,
    "offload_store_seconds": 0.5,
    "offload_load_seconds": 0.125,
    "offload_tier_blocks": 8,
    "offload_tier_cached": 5,
    "offload_tier_pinned": 2,
    "offload_tier_stored": 20,
    "offload_tier_loaded": 6,
    "offload_tier_evicted": 13,
    "offload_tier_refused": 1,
}


def page(records: Any, monkeypatch: pytest.MonkeyPatch, on: dict[str, bool]) -> str:
    monkeypatch.setattr("vramscope.exporters.exporter.version", lambda _: "1.2.3")
    header = {"kv_connector": "OffloadingConnector"}
    records.engine(header=header, capabilities=on, **FIELDS)
    host = HostRecords(records.folder, lambda: NOW_S)
    exporter = Exporter(host.read, clock=lambda: NOW_S)
    exporter.refresh()
    text = exporter.page.page().decode()
    host.close()
    return text


def test_page(
    records: Any, monkeypatch: pytest.MonkeyPatch, golden: Callable[[str, str], None]
) -> None:
    text = page(records, monkeypatch, ON)
    at = text.index("# HELP vramscope_kv_offload")
    golden("engine_offload.prom", text[at:])


def test_capability_that_is_off_has_no_series(
    records: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page(records, monkeypatch, ON | {"offload_transfers": False, "offload_tier": False})
    assert "vramscope_kv_offload_queried_tokens_total" in text
    assert "vramscope_kv_offload_bytes_total" not in text
    assert "vramscope_kv_offload_tier_blocks" not in text


def test_engine_without_a_connector_has_none_of_it(
    records: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "kv_offload" not in page(records, monkeypatch, {"steps": True})
