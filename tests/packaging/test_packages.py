import ast
import importlib
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from vramscope.exporters.cli import COMMANDS, load

ROOT = Path(__file__).parents[2]
ROOMS = ("alerts", "controller", "dashboards", "demo", "exporters")
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())


def packages_on_disk() -> Iterator[str]:
    for room in ROOMS:
        for file in (ROOT / room).rglob("__init__.py"):
            yield ".".join(("vramscope", *file.parent.relative_to(ROOT).parts))


def test_the_package_list_is_the_folders() -> None:
    listed = SETTINGS["tool"]["setuptools"]["packages"]
    assert listed == sorted(packages_on_disk())
    assert "vramscope" not in listed, "the root is a namespace"


@pytest.mark.parametrize("room", ROOMS)
def test_each_folder_with_modules_is_a_package(room: str) -> None:
    folders = {file.parent for file in (ROOT / room).rglob("*.py")}
    assert all((folder / "__init__.py").is_file() for folder in folders)


@pytest.mark.parametrize("room", ROOMS)
def test_each_room_is_typed(room: str) -> None:
    assert (ROOT / room / "py.typed").is_file()


def test_the_base_install_brings_nothing() -> None:
    assert SETTINGS["project"]["dependencies"] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_resolves(name: str) -> None:
    assert callable(load(name, COMMANDS[name]))
    assert COMMANDS[name].extra in SETTINGS["project"]["optional-dependencies"]


def test_each_entry_point_resolves() -> None:
    targets = [
        *SETTINGS["project"]["scripts"].values(),
        *SETTINGS["project"]["entry-points"]["vllm.general_plugins"].values(),
    ]
    for target in targets:
        module, _, name = target.partition(":")
        assert callable(getattr(importlib.import_module(module), name))


def test_each_module_parses_on_the_oldest_python_we_promise() -> None:
    _, minor = SETTINGS["project"]["requires-python"].removeprefix(">=").split(".")
    for room in ROOMS:
        for file in (ROOT / room).rglob("*.py"):
            ast.parse(file.read_text(), feature_version=(3, int(minor)))
