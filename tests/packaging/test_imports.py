"""Who may import whom (docs/index.md), read from the source: nothing is imported."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROBE = "vramscope.exporters.engine.probe"
ENGINE = "vramscope.exporters.engine"
CLI = "exporters/cli/__init__.py"

DATA = ("vramscope.exporters.catalog", "vramscope.exporters.errors")
"""What has no code of a source or a page in it: the catalog, and how a failure is told."""

ALLOWED = {
    "exporters": ("vramscope.exporters",),
    "controller": ("vramscope.controller", "vramscope.exporters"),
    "dashboards": ("vramscope.dashboards", *DATA),
    "alerts": ("vramscope.alerts", *DATA),
    "demo": ("vramscope.demo", "vramscope.exporters"),
}
"""What each room may import of the suite."""


def imports(source: str) -> Iterator[str]:
    """Yield the modules that ``source`` imports, at its top or anywhere in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def within(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def forbidden(source: str, allowed: tuple[str, ...]) -> list[str]:
    """Return the imports of the suite that are not of ``allowed``."""
    ours = (module for module in imports(source) if within(module, ("vramscope",)))
    return [module for module in ours if not within(module, allowed)]


def modules(folder: str) -> list[Path]:
    found = sorted((ROOT / folder).rglob("*.py"))
    assert found, folder
    return found


@pytest.mark.parametrize("room", ALLOWED)
def test_rooms_import_only_what_the_design_lets_them(room: str) -> None:
    wrong = {
        f"{file.relative_to(ROOT)}: {module}"
        for file in modules(room)
        for module in forbidden(file.read_text(), ALLOWED[room])
    }
    assert not wrong


def test_the_probe_needs_only_the_standard_library_and_vllm() -> None:
    wrong = {
        f"{file.relative_to(ROOT)}: {module}"
        for file in modules("exporters/engine/probe")
        for module in imports(file.read_text())
        if not within(module, (ENGINE, "vllm", *sys.stdlib_module_names))
    }
    assert not wrong


def test_what_the_probe_uses_of_the_engine_package_is_as_bare() -> None:
    """Modules beside the probe that it imports run inside the engine too."""
    pending, seen = set(modules("exporters/engine/probe")), set[Path]()
    while pending:
        file = pending.pop()
        seen.add(file)
        for module in imports(file.read_text()):
            assert within(module, (ENGINE, "vllm", *sys.stdlib_module_names)), f"{file}: {module}"
            pending |= set(files_of(module)) - seen


def files_of(module: str) -> Iterator[Path]:
    """Yield the files that importing ``module`` (or a name in one) runs, of the suite's."""
    parts = module.split(".")[1:] if within(module, ("vramscope",)) else []
    for end in range(1, len(parts) + 1):
        path = ROOT.joinpath(*parts[:end])
        yield from (f for f in (path / "__init__.py", path.with_suffix(".py")) if f.is_file())


def test_the_command_line_imports_nothing_that_may_be_missing() -> None:
    wrong = [
        module
        for module in imports((ROOT / CLI).read_text())
        if not within(module, ("vramscope.exporters", *sys.stdlib_module_names))
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import vramscope.controller.loop", ["vramscope.controller.loop"]),
        ("def f():\n    from vramscope import controller", ["vramscope.controller"]),
        ("from vramscope.exporters.signals import kv", ["vramscope.exporters.signals.kv"]),
        ("import vramscope.exporters.catalogue", ["vramscope.exporters.catalogue"]),
        ("from vramscope.exporters.catalog import METRICS\nimport json", []),
    ],
)
def test_the_check_finds_what_is_forbidden(source: str, found: list[str]) -> None:
    assert forbidden(source, ALLOWED["alerts"]) == found
