"""``vramscope dashboards``: write the dashboards, or check that what is written is in date."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from vramscope.dashboards.build import FOLDER, files
from vramscope.dashboards.configmap import config_maps
from vramscope.exporters.errors import VramscopeError

__all__ = ["main"]

DESCRIPTION = """\
Writes the Grafana dashboards as JSON files, from the metric catalog and its thresholds. Import
them in Grafana 11 to 13, provision the folder, or have Grafana's sidecar find the ConfigMaps.
"""
EPILOG = """\
examples:
  vramscope dashboards build -o /etc/grafana/dashboards
  vramscope dashboards check -o dashboards/json     exit code 1 when a file is stale
  vramscope dashboards configmap --namespace monitoring | kubectl apply -f -
"""


class StaleDashboardsError(VramscopeError):
    """Files are not what this version writes."""


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit code.

    Raises:
        StaleDashboardsError: ``check`` found files that are missing or differ.
    """
    parser = argparse.ArgumentParser(
        prog="vramscope dashboards",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", choices=("build", "check", "configmap"))
    parser.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        type=Path,
        default=FOLDER,
        help="of the JSON files (default: where this package has them)",
    )
    parser.add_argument(
        "--namespace", default="default", help="of the ConfigMaps (default: default)"
    )
    options = parser.parse_args(argv)
    if options.action == "configmap":
        sys.stdout.write(config_maps(options.namespace))
        return 0
    made = files()
    if options.action == "build":
        _write(options.output, made)
        sys.stdout.write(f"{len(made)} dashboards in {options.output}\n")
        return 0
    stale = [name for name, text in made.items() if _read(options.output / name) != text]
    if stale:
        raise StaleDashboardsError(
            f"{options.output}: {', '.join(stale)} missing or not what this version writes: "
            "run vramscope dashboards build"
        )
    return 0


def _write(folder: Path, made: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in made.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise VramscopeError(f"{folder}: {error.strerror}: want a folder to write to") from error


def _read(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
