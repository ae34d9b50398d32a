"""The ``vramscope`` command: a table of commands, each imported when it is called."""

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

from vramscope.exporters.errors import MissingExtraError, VramscopeError

__all__ = ["COMMANDS", "Command", "main"]


class Command(NamedTuple):
    """One row of the table."""

    target: str
    """``module:function``; the function takes the arguments and returns the exit code."""
    extra: str
    """The extra whose packages it needs."""
    help: str


COMMANDS = {
    "blocks": Command(
        "vramscope.exporters.blocks.command:main",
        "pictures",
        "show which KV block of an engine holds what, in the terminal or as SVG or PNG",
    ),
    "dashboards": Command(
        "vramscope.dashboards.command:main",
        "dashboards",
        "write the Grafana dashboards as JSON, or check that they are in date",
    ),
    "export": Command(
        "vramscope.exporters.export:main",
        "exporter",
        "serve the engines' signals to Prometheus (/metrics) and to controllers (/signals)",
    ),
    "plan": Command(
        "vramscope.controller.plan.command:main",
        "exporter",
        "say what of a model fits a GPU: weights, tokens, requests, settings; no engine needed",
    ),
    "record": Command(
        "vramscope.exporters.recording.record_command:main",
        "exporter",
        "write what export reads to a file, for a while",
    ),
    "replay": Command(
        "vramscope.exporters.recording.replay_command:main",
        "exporter",
        "serve a recording's pages again, as they were",
    ),
    "serve": Command(
        "vramscope.controller.serve:main",
        "controller",
        "run the engines of a file behind one OpenAI-compatible front door",
    ),
    "topology": Command(
        "vramscope.exporters.gpu.topology_command:main",
        "exporter",
        "show how near this host's GPUs are to each other, and what their links carry",
    ),
}

EXIT_USAGE = 2
EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; print a failure as one line, never as a traceback.

    Returns:
        The command's exit code: 0 done, 1 failed, 2 misused, 130 interrupted.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    if not args or args[0] in ("-h", "--help"):
        sys.stdout.write(usage())
        return 0 if args else EXIT_USAGE
    if args[0] == "--version":
        from importlib.metadata import version

        sys.stdout.write(f"vramscope {version('vramscope')}\n")
        return 0
    name, rest = args[0], args[1:]
    command = COMMANDS.get(name)
    if command is None:
        known = ", ".join(COMMANDS)
        sys.stderr.write(f"vramscope: unknown command {name!r}: want one of {known}\n")
        return EXIT_USAGE
    try:
        return load(name, command)(rest)
    except VramscopeError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def load(name: str, command: Command) -> Callable[[Sequence[str]], int]:
    """Import a command's function.

    Raises:
        MissingExtraError: a package of its extra is not installed.
    """
    module, _, function = command.target.partition(":")
    try:
        return cast(
            "Callable[[Sequence[str]], int]", getattr(importlib.import_module(module), function)
        )
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("vramscope"):
            raise
        raise MissingExtraError(name, command.extra, error.name) from error


def usage() -> str:
    """Return the help text: what each command is for, and where to go on reading."""
    width = max(map(len, COMMANDS))
    rows = "".join(f"  {name:<{width}}  {command.help}\n" for name, command in COMMANDS.items())
    return (
        "usage: vramscope COMMAND [options]\n\n"
        "Shows where the VRAM of vLLM engines went, and routes requests by it.\n\n"
        f"commands:\n{rows}\n"
        "vramscope COMMAND --help explains a command; vramscope --version prints the version.\n"
    )
