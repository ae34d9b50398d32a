"""Flags and variables of an engine that ``vramscope serve`` sets itself."""

from collections.abc import Iterator, Mapping, Sequence

from vramscope.controller.mistakes import Mistake, place

__all__ = ["reserved_flags", "reserved_variables"]

FLAGS = {
    "--host": "nothing: engines listen on 127.0.0.1",
    "--port": "the setting port",
    "--uds": "nothing: engines listen on 127.0.0.1",
    "--model": "the setting model",
    "--served-model-name": "the setting served_name",
    "--lora-modules": "the setting adapters",
    "--root-path": "nothing: the front door asks /v1/...",
    "--ssl-keyfile": "nothing: the front door speaks HTTP to the engines",
    "--ssl-certfile": "nothing: the front door speaks HTTP to the engines",
    "--config": "the flags themselves, or the settings of this file",
}
"""Flags that would contradict the file, and what to write instead."""

VARIABLES = {
    "VRAMSCOPE_ENGINE": "the setting name",
    "VRAMSCOPE_RUN_DIR": "the setting run_dir",
}


def reserved_flags(engine: int, args: Sequence[object]) -> Iterator[Mistake]:
    """Yield a mistake for each flag of ``engines[engine].args`` that this file sets."""
    for index, arg in enumerate(args):
        # vLLM takes --served_model_name=x for --served-model-name x.
        flag = str(arg).partition("=")[0].replace("_", "-")
        if instead := FLAGS.get(flag):
            yield Mistake(place(("engines", engine, "args", index)), f"= {arg!r}: want {instead}")


def reserved_variables(engine: int, env: Mapping[object, object]) -> Iterator[Mistake]:
    """Yield a mistake for each variable of ``engines[engine].env`` that this file sets."""
    for name in env:
        if instead := VARIABLES.get(str(name)):
            yield Mistake(place(("engines", engine, "env", str(name))), f": want {instead}")
