"""The options of ``vramscope export`` and the help that teaches them."""

import argparse
from pathlib import Path

__all__ = ["add_compat", "add_endpoint", "add_place_options", "add_sources", "parser"]

DESCRIPTION = """\
Reads the vLLM engines of this host by the records that vramscope's probe writes, its GPUs
by DCGM or NVML, and the fabric's ports by sysfs, and serves:

  /metrics   for Prometheus (text, OpenMetrics, gzip); made once a refresh, whoever scrapes
  /signals   the engines' signals as JSON, read at the moment of the request
  /healthz   200 while the refresh loop lives
  /readyz    200 when at least one source reads

An engine has the probe when vramscope is installed in its Python environment
(pip install vramscope): nothing else is needed.
"""
EPILOG = """\
examples:
  vramscope export                            serve on 127.0.0.1:19400
  vramscope export --listen 0.0.0.0:19400 --web-config-file web.yml
                                              TLS and users, for a Prometheus on another host
  vramscope export --gpu-source none          engines only
  vramscope export --scrape big=http://10.0.0.7:8000/metrics
                                              an engine that has no probe, by its own page
  vramscope export --once                     print the page and stop; exit code 1 if a source fails
  vramscope export --once --json              print the engines' signals as JSON

SIGHUP reloads the web configuration; Ctrl-C or SIGTERM stops.
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command's arguments."""
    parser = argparse.ArgumentParser(
        prog="vramscope export",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    group = add_endpoint(parser)
    group.add_argument("--once", action="store_true", help="print the page and stop")
    group.add_argument("--json", action="store_true", help="with --once: print /signals instead")
    add_sources(parser)
    return parser


def add_sources(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is read."""
    _add_engines(parser)
    _add_hardware(parser)
    parser.add_argument(
        "--period",
        metavar="SECONDS",
        type=_period,
        default=1.0,
        help="time between refreshes (default 1); below 1 costs the GPUs' work",
    )


def add_endpoint(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options that say where pages are served, and to whom; return their group."""
    group = parser.add_argument_group("endpoint")
    group.add_argument(
        "--listen",
        metavar="HOST:PORT",
        type=_address,
        default=("127.0.0.1", 19400),
        help="where to serve; port 0 picks a free one (default 127.0.0.1:19400)",
    )
    group.add_argument(
        "--web-config-file",
        metavar="FILE",
        type=Path,
        help="TLS, client certificates, users and headers, in exporter-toolkit's format",
    )
    group.add_argument(
        "--max-connections",
        metavar="N",
        type=_count,
        default=256,
        help="clients served at once; one more is turned away (default 256)",
    )
    return group


def _add_engines(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("engines")
    group.add_argument(
        "--run-dir",
        metavar="FOLDER",
        type=Path,
        help="where engines write their records (default: $VRAMSCOPE_RUN_DIR, else "
        "/run/vramscope if writable, else $XDG_RUNTIME_DIR/vramscope, else the temp dir)",
    )
    group.add_argument(
        "--scrape",
        metavar="[NAME=]URL",
        action="append",
        default=[],
        help="/metrics of a vLLM engine without the probe, for what it says; once for each engine "
        "(NAME: the engine label, default HOST:PORT)",
    )


def _add_hardware(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("GPUs")
    group.add_argument(
        "--gpu-source",
        choices=("auto", "dcgm", "nvml", "none"),
        default="auto",
        help="auto takes DCGM, else NVML, and goes over to DCGM when it appears (default auto)",
    )
    group.add_argument(
        "--dcgm-address",
        metavar="ADDRESS",
        default="",
        help="host engine as HOST:PORT or unix:///PATH (default: one of this process's own)",
    )
    group.add_argument(
        "--links",
        action="store_true",
        help="each NVLink's traffic and errors too, not only the GPU's sum",
    )
    add_compat(group)
    group.add_argument(
        "--kubelet-socket",
        metavar="FILE",
        type=Path,
        help="pod-resources socket (default: the kubelet's usual one where it exists)",
    )
    group.add_argument(
        "--hpc-job-dir",
        metavar="FOLDER",
        type=Path,
        help="files named by GPU index with a job id a line, as batch schedulers write them",
    )
    add_place_options(group)


def add_compat(group: argparse._ActionsContainer) -> None:
    """Add the options that say which foreign names are on the page."""
    group.add_argument(
        "--compat",
        choices=("dcgm",),
        help="dcgm-exporter's names, labels and units beside vramscope's own, for dashboards "
        "that have them",
    )
    group.add_argument(
        "-f",
        "--collectors",
        metavar="FILE",
        type=Path,
        help="with --compat dcgm: dcgm-exporter's counters file (default: its default set)",
    )


def add_place_options(parser: argparse._ActionsContainer) -> None:
    """Add the options that say where the host stands among others."""
    parser.add_argument(
        "--rack", metavar="NAME", default="", help="the host's rack (default: $VRAMSCOPE_RACK)"
    )
    parser.add_argument(
        "--island",
        metavar="NAME",
        default="",
        help="hosts on one fabric have the same (default: $VRAMSCOPE_ISLAND, else the InfiniBand "
        "subnet where it has a prefix of its own)",
    )


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r}: want HOST:PORT, e.g. 127.0.0.1:19400")
    return host.strip("[]"), int(port)


def _period(text: str) -> float:
    try:
        period_s = float(text)
    except ValueError:
        period_s = 0.0
    if not 0.1 <= period_s <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r}: want seconds from 0.1 to 3600, e.g. 1")
    return period_s


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100_000:
        raise argparse.ArgumentTypeError(f"{text!r}: want a number from 1 to 100000, e.g. 256")
    return int(text)
