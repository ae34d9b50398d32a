"""Starts engines, controller and exporter, sends a load, shows the signals, stops it all."""

import argparse
import asyncio
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vramscope.demo.configuration import ADAPTERS, ENGINES, MODEL, configuration
from vramscope.demo.load import Report, run_load
from vramscope.demo.processes import Program, ProgramError, adopt_orphans, end_descendants
from vramscope.demo.requests import mixed_requests
from vramscope.demo.router import fetch_picks
from vramscope.demo.summary import shortcomings, summary
from vramscope.demo.watch import History, settle, watch
from vramscope.exporters.errors import VramscopeError

__all__ = ["main"]

CLIENTS = 14
SEED = 7
SHORTEST_S, LONGEST_S = 1.0, 86400.0
EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the started programs listen."""

    front_door: str
    admin: str
    exporter: str


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; return the exit code.

    Returns:
        0 when preemptions and cold adapters were seen and nothing is left running, 130
        when interrupted before the engines were ready, else 1.
    """
    options = parser().parse_args(argv)
    try:
        adopt_orphans()
        return asyncio.run(demo(options.seconds, options.folder.resolve()))
    except (VramscopeError, OSError) as error:
        say(f"demo: {error}")
        return EXIT_FAILED


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m vramscope.demo", description=__doc__)
    parser.add_argument(
        "--seconds",
        type=duration_s,
        default=os.environ.get("DEMO_SECONDS") or "60",
        help="how long the load runs (default: $DEMO_SECONDS, else 60)",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("demo-run"),
        help="gets the model, the configuration and the logs (default: demo-run)",
    )
    return parser


def duration_s(text: str) -> float:
    """Return the seconds that ``text`` says."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not SHORTEST_S <= seconds <= LONGEST_S:
        raise argparse.ArgumentTypeError(f"{text!r}: want seconds from 1 to 86400, e.g. 60")
    return seconds


async def demo(seconds: float, folder: Path) -> int:
    """Run the demo in ``folder``; leave nothing running."""
    interrupted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    logs = folder / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    # Of this run alone: an engine that outlived an earlier, killed demo must not be shown.
    records = Path(tempfile.mkdtemp(prefix="records-", dir=folder))
    programs: list[Program] = []
    try:
        code = await boot_and_show(seconds, folder, records, programs, interrupted)
    finally:
        problems = await stop_all(programs)
        shutil.rmtree(records)
        for problem in problems:
            say(f"demo: {problem}")
    return EXIT_FAILED if problems else code


async def boot_and_show(
    seconds: float,
    folder: Path,
    records: Path,
    programs: list[Program],
    interrupted: asyncio.Event,
) -> int:
    """Start the programs, adding them to ``programs``, run the load, print what came of it."""
    booting = asyncio.create_task(boot(folder, records, programs))
    await first(booting, interrupted.wait())
    if not booting.done():
        booting.cancel()
        await asyncio.gather(booting, return_exceptions=True)
        say("demo: interrupted before the engines were ready")
        return EXIT_INTERRUPTED
    addresses = await booting
    say(f"      metrics of the engines    {addresses.exporter}/metrics")
    say(f"      metrics of the controller {addresses.admin}/metrics")
    say(f"[4/4] mixed load from {CLIENTS} clients for {seconds:.0f} s (Ctrl-C ends it) ...")
    history = History()
    began_s = time.monotonic()
    report, ended = await show(seconds, addresses, history, programs, interrupted)
    for line in summary(history, report, time.monotonic() - began_s):
        say(line)
    say(await fetch_picks(addresses.admin))
    problems = [*ended, *shortcomings(history, report, ENGINES)]
    for problem in problems:
        say(f"demo: {problem}")
    return EXIT_FAILED if problems else 0


async def boot(folder: Path, records: Path, programs: list[Program]) -> Addresses:
    """Make the model and start the programs, adding each to ``programs``."""
    logs = folder / "logs"
    say("[1/4] tiny random model and adapters ...")
    config = folder / "vramscope.yaml"
    config.write_text(configuration(folder, logs))
    command = [sys.executable, "-m", "vramscope.exporters.cli"]
    env = {"VRAMSCOPE_RUN_DIR": str(records)}
    say("[2/4] two vLLM engines and the controller (about 20 s on two cores) ...")
    serve = Program("controller", [*command, "serve", "-c", str(config)], env, logs / "serve.log")
    programs.append(serve)
    ready = await serve.ready(r"^ready: front door (\S+), admin (\S+)$", boot_line)
    say("[3/4] exporter ...")
    export = Program(
        "exporter",
        [*command, "export", "--listen", "127.0.0.1:0", "--gpu-source", "none"],
        env,
        logs / "export.log",
    )
    programs.append(export)
    exporter = await export.ready(r"^vramscope export: (\S+)/metrics$", boot_line)
    return Addresses(ready[1], ready[2], exporter[1])


async def show(
    seconds: float,
    addresses: Addresses,
    history: History,
    programs: Sequence[Program],
    interrupted: asyncio.Event,
) -> tuple[Report, list[str]]:
    """Run load and live view until the time is over, Ctrl-C, or the end of a program.

    Returns:
        The load's report, and how a program ended that should not have.
    """
    stop = asyncio.Event()
    asks = mixed_requests(SEED, MODEL, ADAPTERS)
    load = asyncio.create_task(run_load(addresses.front_door, asks, clients=CLIENTS, stop=stop))
    live = asyncio.create_task(watch(addresses.exporter, history, say, stop=stop))
    ends = [asyncio.create_task(program.ended()) for program in programs]
    try:
        await first(load, live, *ends, interrupted.wait(), asyncio.sleep(seconds))
    finally:
        stop.set()
        report, _ = await asyncio.gather(load, live)
    await settle(addresses.exporter, history)
    ended = [end.result() for end in ends if end.done()]
    for end in ends:
        end.cancel()
    return report, ended


async def first(*waits: Coroutine[Any, Any, object] | asyncio.Task[Any]) -> None:
    """Return when the first of them is done. Tasks given are left running."""
    own = [asyncio.create_task(one) for one in waits if not isinstance(one, asyncio.Task)]
    given = [one for one in waits if isinstance(one, asyncio.Task)]
    await asyncio.wait([*own, *given], return_when=asyncio.FIRST_COMPLETED)
    for task in own:
        task.cancel()


async def stop_all(programs: Sequence[Program]) -> list[str]:
    """Stop the programs, the last started first.

    Returns:
        What did not stop as it should, one line each; every process is gone all the same.
    """
    if programs:
        say("stopping engines, controller and exporter ...")
    problems = []
    for program in reversed(programs):
        try:
            await program.stop()
        except ProgramError as error:
            problems.append(str(error))
    problems += await end_descendants(os.getpid())
    if programs and not problems:
        say("all stopped: no process is left")
    return problems


def boot_line(line: str) -> None:
    """Print a log line of a program that boots: without its time and level."""
    say(f"      {re.sub(r'^[0-9T:.+-]+ [A-Z]+ ', '', line)}")


def say(line: str) -> None:
    """Print a line now, whoever reads it."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
