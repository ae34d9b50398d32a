"""The wheel, as somebody would install it: alone, in a new environment."""

import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("alerts", "controller", "dashboards", "demo", "exporters")
SOURCES = ("pyproject.toml", "README.md", "LICENSE", *ROOMS)
PACKAGES: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"][
    "packages"
]


def run(*command: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: a build in the checkout would pick up what an earlier one left."""
    source = tmp_path_factory.mktemp("source")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(ROOT / name, source / name)
    # Without isolation nothing is downloaded.
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
    built = run(*build, "--outdir", source / "dist", source)
    assert built.returncode == 0, built.stdout + built.stderr
    (file,) = (source / "dist").glob("*.whl")
    return file


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that holds the wheel and nothing else."""
    environment = tmp_path_factory.mktemp("bare")
    venv.create(environment, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python")]
    installed = run(*pip, "install", "--quiet", "--no-index", wheel)
    assert installed.returncode == 0, installed.stderr
    return environment / "bin"


def test_the_wheel_holds_every_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    folders = {str(Path(name).parent).replace("/", ".") for name in names if name.endswith(".py")}
    assert folders == set(PACKAGES)
    assert {f"vramscope/{room}/py.typed" for room in ROOMS} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    modules = {
        f"vramscope/{file.relative_to(ROOT)}"
        for room in ROOMS
        for file in (ROOT / room).rglob("*.py")
    }
    assert modules == {name for name in names if name.endswith(".py")}


def test_each_room_imports_with_nothing_else_installed(bare: Path) -> None:
    for room in ROOMS:
        done = run(bare / "python", "-I", "-W", "error", "-c", f"import vramscope.{room}")
        assert done.returncode == 0, done.stderr


def test_help_and_version_work_with_nothing_else_installed(bare: Path) -> None:
    for flag in ("--help", "--version"):
        done = run(bare / "vramscope", flag)
        assert (done.returncode, done.stderr) == (0, "")
        assert "vramscope" in done.stdout


@pytest.mark.parametrize(("command", "extra"), [("export", "exporter"), ("serve", "controller")])
def test_a_missing_extra_is_named_in_one_line(bare: Path, command: str, extra: str) -> None:
    done = run(bare / "vramscope", command)
    assert done.returncode == 1
    assert f"pip install 'vramscope[{extra}]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_probe_where_there_is_no_engine_says_so_and_does_no_harm(bare: Path) -> None:
    code = "import vramscope.exporters.engine.probe as probe; probe.register()"
    done = run(bare / "python", "-I", "-W", "error", "-c", code)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "vramscope: no probe: No module named 'vllm'\n"
