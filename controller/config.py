"""The settings of ``vramscope serve``: names, units, defaults, limits and what they are for.

docs/configuration.md is generated from these models (``config_docs.py``), and so is the
``want ...`` part of each error message: a setting is described here and nowhere else.
"""

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
)
from pydantic_core import PydanticCustomError

from vramscope.controller.policy import POLICIES

__all__ = ["AdminConfig", "EngineConfig", "FrontDoorConfig", "Listener", "ServeConfig"]

MIB = 1024 * 1024


def setting(help: str, *, want: str, example: str, **limits: Any) -> Any:  # noqa: A002 - its name everywhere else
    """Return a field that says what it is for, what it takes, and gives an example in YAML."""
    return Field(description=help, json_schema_extra={"want": want, "example": example}, **limits)


def as_text(value: object) -> object:
    """Let a flag or variable be written as a number: ``512`` means ``"512"``."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else value


def from_file(value: str, info: ValidationInfo) -> str:
    """Resolve a path against the folder of the file that names it (context ``folder``)."""
    path = Path(value).expanduser()
    folder: Path = (info.context or {}).get("folder", Path.cwd())
    return str(path if path.is_absolute() else (folder / path).resolve())


def model_source(value: str, info: ValidationInfo) -> str:
    """Resolve a model given as a path, which must exist; leave a hub id as it is."""
    if not value.startswith(("/", ".", "~")):
        return value
    resolved = from_file(value, info)
    if not Path(resolved).exists():
        raise ValueError(f"no such file or folder: {resolved}")
    return resolved


def known_policy(value: str) -> str:
    """Refuse a policy that is not in the table."""
    if value not in POLICIES:
        raise PydanticCustomError("unknown_policy", "unknown policy")
    return value


def default_served_name(data: Mapping[str, Any]) -> str:
    """Name a model after the last part of its path or hub id."""
    return PurePath(str(data.get("model", ""))).name


# Rust's regular expressions judge these: their $ is the very end, not before a line break.
Text = Annotated[str, BeforeValidator(as_text)]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
ServedName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@+-]{0,255}$")]
ModelSource = Annotated[str, StringConstraints(min_length=1), AfterValidator(model_source)]
FilePath = Annotated[str, StringConstraints(min_length=1), AfterValidator(from_file)]
Host = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.:_-]+$")]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]

WANT_PORT = "a port from 0 to 65535, where 0 picks a free one"
WANT_HOST = "a host name or an IP address"
WANT_SOURCE = "a hub id, or an existing path that starts with '/', './' or '~'"
WANT_SERVED = "1 to 256 of A-Z a-z 0-9 . _ / : @ + -, beginning with a letter or a digit"


class Settings(BaseModel):
    """Frozen, strict about types, and closed: an unknown key is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True)


class EngineConfig(Settings):
    """One vLLM engine, run as a child process."""

    name: Name = setting(
        "Stable id of the engine: its log's name and its `engine` label in every metric. Unique.",
        want="1 to 63 of a-z 0-9 -, beginning with a letter or a digit",
        example="a",
    )
    model: ModelSource = setting(
        "The model to load. A relative path starts at the file's folder.",
        want=WANT_SOURCE,
        example="./models/tiny",
    )
    served_name: ServedName = setting(
        "The `model` that requests ask for. Engines that share it serve one model together. "
        "Default: the last part of `model`.",
        want=WANT_SERVED,
        example="tiny",
        default_factory=default_served_name,
    )
    port: int = setting(
        "Port of the engine on 127.0.0.1; 0 picks a free one.",
        want=WANT_PORT,
        example="8001",
        default=0,
        ge=0,
        le=65535,
    )
    args: Annotated[tuple[Text, ...], Field(strict=False)] = setting(
        "More flags for vLLM, as on its command line. Those that this file sets itself "
        "(`--port`, `--model`, ...) are refused here.",
        want="a list of flags and values",
        example='["--max-model-len", 4096]',
        default=(),
    )
    env: Mapping[VariableName, Text] = setting(
        "Environment variables of this engine, added to those of `vramscope serve`. "
        "Never shown in messages or on pages.",
        want="a mapping from variable names to text",
        example='{HF_HUB_OFFLINE: "1"}',
        default={},
        repr=False,
    )
    adapters: Mapping[ServedName, ModelSource] = setting(
        "LoRA adapters by the `model` name that requests ask for. A relative path starts at "
        "the file's folder.",
        want=f"a mapping from names ({WANT_SERVED}) to {WANT_SOURCE}",
        example="{french: ./adapters/french}",
        default={},
    )


class Listener(Settings):
    """An address to listen on."""

    host: Host
    port: int


class FrontDoorConfig(Listener):
    """Where clients send their requests (OpenAI's API)."""

    host: Host = setting(
        "Address to listen on; `0.0.0.0` for every interface.",
        want=WANT_HOST,
        example="127.0.0.1",
        default="127.0.0.1",
    )
    port: int = setting(
        "Port; 0 picks a free one, printed when ready.",
        want=WANT_PORT,
        example="8080",
        default=8080,
        ge=0,
        le=65535,
    )


class AdminConfig(Listener):
    """Where people and Prometheus look: /metrics, /healthz, /readyz, /debug/engines."""

    host: Host = setting(
        "Address to listen on. Its pages show paths and process ids: keep it private.",
        want=WANT_HOST,
        example="127.0.0.1",
        default="127.0.0.1",
    )
    port: int = setting(
        "Port; 0 picks a free one, printed when ready.",
        want=WANT_PORT,
        example="8081",
        default=8081,
        ge=0,
        le=65535,
    )


class ServeConfig(Settings):
    """Settings at the top of the file."""

    engines: Annotated[tuple[EngineConfig, ...], Field(strict=False, min_length=1)] = setting(
        "The engines to run.",
        want="a list of at least one engine",
        example="[{name: a, model: ./models/tiny}]",
    )
    front_door: FrontDoorConfig = setting(
        "The listener for clients.",
        want="a mapping with host and port",
        example="{port: 8080}",
        default_factory=FrontDoorConfig,
    )
    admin: AdminConfig = setting(
        "The listener for people and Prometheus.",
        want="a mapping with host and port",
        example="{port: 8081}",
        default_factory=AdminConfig,
    )
    policy: Annotated[str, AfterValidator(known_policy)] = setting(
        "How an engine is picked: "
        + "; ".join(f"`{name}`: {policy.help}" for name, policy in POLICIES.items())
        + ".",
        want=f"one of {', '.join(POLICIES)}",
        example="seed",
        default="seed",
    )
    run_dir: FilePath | None = setting(
        "Folder of the engines' probe records, given to them as VRAMSCOPE_RUN_DIR. Default: "
        "$VRAMSCOPE_RUN_DIR, else /run/vramscope where it can be written, else a folder of "
        "this user.",
        want="a path",
        example="/run/vramscope",
        default=None,
    )
    log_dir: FilePath | None = setting(
        "Folder of the engines' output, one file an engine, begun afresh at each start. "
        "Default: a new folder in the temp folder; its path is printed.",
        want="a path",
        example="/var/log/vramscope",
        default=None,
    )
    startup_timeout_s: float = setting(
        "Seconds an engine may take to answer its health check for the first time.",
        want="seconds from 1 to 86400",
        example="300",
        default=300.0,
        ge=1,
        le=86400,
    )
    drain_timeout_s: float = setting(
        "Seconds that requests in flight get to finish after Ctrl-C or SIGTERM. A second "
        "signal cuts it short.",
        want="seconds from 0 to 86400",
        example="30",
        default=30.0,
        ge=0,
        le=86400,
    )
    sense_period_s: float = setting(
        "Seconds between two reads of the probe records.",
        want="seconds from 0.01 to 60",
        example="0.1",
        default=0.1,
        ge=0.01,
        le=60,
    )
    assumed_output_tokens: int = setting(
        "Tokens a chat answer is taken to need where the request sets no limit (a completion "
        "without one gets OpenAI's default of 16).",
        want="tokens from 1 to 10000000",
        example="256",
        default=256,
        ge=1,
        le=10_000_000,
    )
    max_request_bytes: int = setting(
        "Largest request body; a larger one is answered 413.",
        want="bytes from 1024 to 1073741824",
        example="33554432",
        default=32 * MIB,
        ge=1024,
        le=1024 * MIB,
    )
