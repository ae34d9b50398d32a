"""The page table that a real engine hands out, against its block manager, after each step."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

PROGRAM = Path(__file__).parent / "programs" / "page_table.py"

pytestmark = pytest.mark.vllm


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("records")


@pytest.fixture(scope="module")
def found(
    tiny_model: Path,
    tiny_adapters: dict[str, Path],
    folder: Path,
    vllm_program: Callable[..., str],
) -> dict[str, Any]:
    settings = {"VRAMSCOPE_ENGINE": "exact", "VRAMSCOPE_RUN_DIR": str(folder)}
    said = vllm_program(PROGRAM, tiny_model, tiny_adapters["ad0"].parent, **settings)
    result: dict[str, Any] = json.loads(said.splitlines()[-1])
    return result


def test_every_dump_equals_the_block_manager_and_adds_up_to_the_record(
    found: dict[str, Any],
) -> None:
    assert found["mismatches"] == []


@pytest.mark.parametrize("what", ["live", "evictable", "clean", "shared", "duplicates"])
def test_what_the_comparison_is_about_did_happen(found: dict[str, Any], what: str) -> None:
    assert found["seen"][what] > 0


@pytest.mark.parametrize("how", ["terminal", "json", "svg", "requests", "png"])
def test_command_shows_an_engine_at_work(found: dict[str, Any], how: str) -> None:
    code, _, err = found["commands"][how]
    assert (code, err) == (0, "")


def test_command_shows_the_numbers_of_one_moment(found: dict[str, Any]) -> None:
    _, out, _ = found["commands"]["json"]
    (pool,) = json.loads(out)["pools"]
    parts = ("live", "slack", "held", "evictable", "clean")
    assert sum(pool[part] for part in parts) == pool["blocks"] == len(pool["block"]["number"])


def test_command_shows_a_row_for_each_request(found: dict[str, Any]) -> None:
    _, out, _ = found["commands"]["terminal"]
    tables = next(int(line.split()[0]) for line in out.splitlines() if "block tables" in line)
    assert tables > 0


def test_command_writes_whole_pictures(found: dict[str, Any], folder: Path) -> None:
    assert ET.parse(folder / "blocks.svg").getroot().tag.endswith("svg")  # noqa: S314  # our own
    assert (folder / "blocks.png").read_bytes().endswith(b"IEND\xaeB`\x82")


def test_nothing_is_left_beside_the_records(found: dict[str, Any], folder: Path) -> None:
    pictures = ["blocks.png", "blocks.svg", "requests.svg"]
    assert sorted(path.name for path in folder.iterdir()) == pictures
