"""``vramscope serve``: the engines of a file behind one OpenAI-compatible front door."""

import argparse
import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import uvloop

from vramscope.controller.command import Command, vllm_command
from vramscope.controller.config import ServeConfig
from vramscope.controller.controller import run
from vramscope.controller.load import load
from vramscope.controller.stopping import StopRequests

__all__ = ["main"]

DESCRIPTION = """\
Starts the vLLM engines of a file, waits until they are healthy, and opens an
OpenAI-compatible front door that picks an engine for each request by what the
engines' probes say of their KV memory and LoRA adapters.
"""

EPILOG = """\
a file to begin with:

  engines:
    - name: a
      model: ./models/tiny             # a path, or a hub id
      args: ["--max-model-len", 4096]  # more flags for vLLM
      adapters: {french: ./adapters/french}
    - name: b
      model: ./models/tiny             # the same name: a and b share its requests
      adapters: {french: ./adapters/french}

then:

  curl http://127.0.0.1:8080/v1/models
  curl http://127.0.0.1:8080/v1/completions -H 'Content-Type: application/json' \\
       -d '{"model": "tiny", "prompt": "hello", "max_tokens": 8, "stream": true}'
  curl http://127.0.0.1:8081/metrics          # for Prometheus
  curl http://127.0.0.1:8081/debug/engines    # what is believed of each engine

Ctrl-C or SIGTERM: new requests are refused, those in flight finish (at most
drain_timeout_s; a second Ctrl-C cuts them), then the engines are stopped.
Every setting: docs/configuration.md.

exit codes: 0 stopped as asked; 1 a mistake in the file, a port in use, an engine
that died at start, or no engine left; 2 misused; 130 interrupted before ready.
"""


def main(argv: Sequence[str] | None = None, command: Command = vllm_command) -> int:
    """Run the command.

    Args:
        argv: arguments without the program's name.
        command: makes an engine's command line; another one is for tests.

    Returns:
        The exit code; see ``EPILOG``.

    Raises:
        VramscopeError: what can't be served, in lines that say where and why.
    """
    args = _parser().parse_args(argv)
    config = load(args.config)
    if args.check:
        sys.stdout.write(f"{args.config}: ok: {_summary(config)}\n")
        return 0
    with _logging_to_stderr(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(config, command, _print_line))


async def _serve(config: ServeConfig, command: Command, say: Callable[[str], None]) -> int:
    stops = StopRequests()
    stops.listen()
    return await run(config, command=command, stops=stops, say=say)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vramscope serve",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-c",
        "--config",
        type=Path,
        default=Path("vramscope.yaml"),
        metavar="FILE",
        help="the configuration (default: vramscope.yaml)",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="check the file, say all of its mistakes, and exit; starts nothing",
    )
    return parser


def _summary(config: ServeConfig) -> str:
    models = {engine.served_name for engine in config.engines}
    adapters = {name for engine in config.engines for name in engine.adapters}
    counts = {"engine": len(config.engines), "model": len(models), "adapter": len(adapters)}
    words = [f"{count} {word}{'s' * (count != 1)}" for word, count in counts.items()]
    return f"{', '.join(words)}, policy {config.policy}"


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@contextlib.contextmanager
def _logging_to_stderr() -> Iterator[None]:
    """Send the suite's log to stderr while the command runs."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S%z")
    )
    logger = logging.getLogger("vramscope")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
