"""Unpacks the system programs that tests run into ``.deps``; installs and starts nothing.

``make deps`` runs it. Debian's packages are downloaded by apt-get and unpacked with dpkg, so that
no daemon, user or configuration is left on the machine. A program that is already on PATH is
left alone. Where nothing can be downloaded it says in one line what to install, and succeeds:
the tests that need the program are then skipped (in CI a skip is a failure).
"""

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from progress import SetupError, Steps, one_at_a_time

ROOT = Path(__file__).resolve().parent.parent
DEPS = ROOT / ".deps"
BIN = DEPS / "bin"
LOG = ROOT / "build" / "deps.log"
APT_LISTS = Path("/var/lib/apt/lists")


class Program(NamedTuple):
    """A row of the table."""

    name: str
    packages: tuple[str, ...]
    """Debian packages, all unpacked into ``.deps/<name>``."""
    binaries: tuple[str, ...]
    """Paths in there, linked into ``.deps/bin`` under their last part."""


PROGRAMS = (Program("prometheus", ("prometheus",), ("usr/bin/prometheus", "usr/bin/promtool")),)

UNPACK = """
rm -rf "$1"; mkdir -p "$1"; cd "$1"; shift
apt-get download "$@"
for package in *.deb; do dpkg-deb --extract "$package" .; rm "$package"; done
"""


def main() -> int:
    """Bring what is missing; return the exit code, which is 0 without it too."""
    missing = [program for program in PROGRAMS if not is_here(program, shutil.which)]
    if not missing:
        return 0
    names = ", ".join(program.name for program in missing)
    if not can_download(shutil.which, os.geteuid(), APT_LISTS):
        sys.stdout.write(
            f"make deps: no {names}, so tests that run them are skipped: run `make deps` as root "
            "on Debian or Ubuntu, or put the programs on PATH\n"
        )
        return 0
    try:
        with one_at_a_time(DEPS):
            bring([program for program in missing if not is_here(program, shutil.which)])
    except SetupError as error:
        sys.stdout.write(f"make deps: tests that run {names} are skipped: {error}\n")
    return 0


def bring(programs: Sequence[Program]) -> None:
    """Download, unpack and link ``programs``."""
    steps = Steps(len(programs), LOG)
    for program in programs:
        folder = DEPS / program.name
        unpack = ["sh", "-ec", UNPACK, "unpack", str(folder), *program.packages]
        # An old package list names versions that the archive no longer has.
        steps.run(f"{program.name}, into .deps", [unpack], [["apt-get", "update"], unpack])
        BIN.mkdir(exist_ok=True)
        for binary in program.binaries:
            link = BIN / Path(binary).name
            link.unlink(missing_ok=True)
            link.symlink_to(Path("..") / program.name / binary)


def is_here(program: Program, which: Callable[[str], str | None]) -> bool:
    """Tell whether each of a program's binaries was unpacked or is on PATH."""
    names = [Path(binary).name for binary in program.binaries]
    return all((BIN / name).exists() or which(name) is not None for name in names)


def can_download(which: Callable[[str], str | None], user_id: int, lists: Path) -> bool:
    """Tell whether apt-get can find packages: as root always, else where it has lists."""
    has_tools = which("apt-get") is not None and which("dpkg-deb") is not None
    return has_tools and (user_id == 0 or any(lists.glob("*Packages*")))


if __name__ == "__main__":
    sys.exit(main())
