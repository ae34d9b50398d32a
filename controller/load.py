"""From ``vramscope.yaml`` to a checked configuration, or to all of its mistakes at once."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from vramscope.controller.config import ServeConfig, default_served_name
from vramscope.controller.errors import ConfigError
from vramscope.controller.mistakes import Mistake, nearest, place, shown
from vramscope.controller.reserved import reserved_flags, reserved_variables
from vramscope.controller.yaml_file import read_yaml

__all__ = ["load"]

Path_ = tuple[str | int, ...]


def load(file: Path) -> ServeConfig:
    """Read and check a configuration file.

    Args:
        file: the YAML file; relative paths in it start at its folder.

    Raises:
        ConfigError: with one line for each mistake of the file.
    """
    value, mistakes = read_yaml(file)
    if not isinstance(value, dict):
        seen = "an empty file" if value is None else shown(value)
        raise ConfigError(
            f"{file}: {seen}: want a mapping with engines, e.g. "
            "engines: [{name: a, model: ./models/tiny}]"
        )
    config: ServeConfig | None = None
    try:
        config = ServeConfig.model_validate(value, context={"folder": file.absolute().parent})
    except ValidationError as error:
        details = error.errors(include_url=False)
        mistakes += [_mistake(detail) for detail in details if not _follows(detail)]
    # On the raw value, so that they are found together with the mistakes of single settings.
    mistakes += _clashes(value)
    if config is None or mistakes:
        lines = dict.fromkeys(mistake.line(str(file)) for mistake in mistakes)
        raise ConfigError("\n".join(lines))
    return config


def _follows(detail: ErrorDetails) -> bool:
    """Whether an error is only the echo of another one, reported at its own place."""
    # A default made from a setting that is wrong; a list short of the items that are wrong.
    return detail["type"] == "default_factory_not_called" or (
        detail["type"] == "too_short" and len(detail["input"]) > 0
    )


def _mistake(detail: ErrorDetails) -> Mistake:
    """Turn one of pydantic's errors into a line that says what is wanted."""
    path, kind = detail["loc"], detail["type"]
    model, field = _field(path)
    where = place(part for part in path if part != "[key]")
    if kind == "extra_forbidden" and model is not None:
        return Mistake(where, nearest(str(path[-1]), tuple(model.model_fields)))
    want = _want(model, field)
    if kind == "model_type" and isinstance(path[-1], int) and model is not None:
        want = f"want a mapping of {', '.join(model.model_fields)}"
    if kind == "missing":
        return Mistake(where, f": missing: {want}")
    seen = shown(detail["input"])
    if "env" in path:  # may be a token; its type says enough
        seen = f"a {type(detail['input']).__name__}"
    why = f" ({detail['ctx']['error']})" if kind == "value_error" and "ctx" in detail else ""
    return Mistake(where, f"= {seen}: {want}{why}")


def _field(path: Path_) -> tuple[type[BaseModel] | None, str]:
    """Return the model and the field that a path of the file leads to."""
    model: type[BaseModel] = ServeConfig
    field = ""
    for step in path:
        if isinstance(step, int):
            continue
        field = step
        info = model.model_fields.get(step)
        inner = _inner(info.annotation) if info else None
        if inner is None:
            break
        model = inner
    return model, field


def _inner(annotation: Any) -> type[BaseModel] | None:
    """Return the settings model inside an annotation: itself, or the item of a tuple."""
    candidates = (annotation, *getattr(annotation, "__args__", ()))
    return next(
        (one for one in candidates if isinstance(one, type) and issubclass(one, BaseModel)), None
    )


def _want(model: type[BaseModel] | None, field: str) -> str:
    outer = ServeConfig.model_fields.get(field)
    info = model.model_fields.get(field) if model else None
    extra = (info or outer).json_schema_extra if (info or outer) else None  # type: ignore[union-attr]
    if not isinstance(extra, dict):
        return "want a mapping of settings"
    return f"want {extra['want']}, e.g. {extra['example']}"


def _clashes(value: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield what is wrong between settings; entries of a wrong type are left to pydantic."""
    engines = [
        (index, engine)
        for index, engine in enumerate(_list(value.get("engines")))
        if isinstance(engine, dict)
    ]
    yield from _duplicate_names(engines)
    yield from _duplicate_ports(value, engines)
    served = {_served(engine) for _, engine in engines}
    for index, engine in engines:
        for adapter in _dict(engine.get("adapters")):
            if adapter in served:
                yield Mistake(
                    place(("engines", index, "adapters", str(adapter))),
                    ": is also the served_name of a model: want a name of its own",
                )
        yield from reserved_flags(index, _list(engine.get("args")))
        yield from reserved_variables(index, _dict(engine.get("env")))
    yield from _adapters_of_two_models(engines)


def _duplicate_names(engines: list[tuple[int, dict[str, Any]]]) -> Iterator[Mistake]:
    first: dict[str, int] = {}
    for index, engine in engines:
        name = engine.get("name")
        if isinstance(name, str) and (known := first.setdefault(name, index)) != index:
            yield Mistake(
                place(("engines", index, "name")),
                f"= {name!r}: want a name of its own: engines[{known}] has it",
            )


def _duplicate_ports(
    value: Mapping[str, Any], engines: list[tuple[int, dict[str, Any]]]
) -> Iterator[Mistake]:
    defaults = {"front_door": 8080, "admin": 8081}
    ports = [
        (f"{name}.port", _dict(value.get(name)).get("port", default))
        for name, default in defaults.items()
    ]
    ports += [(place(("engines", index, "port")), engine.get("port")) for index, engine in engines]
    first: dict[int, str] = {}
    for where, port in ports:
        if type(port) is not int or port == 0:
            continue
        if (known := first.setdefault(port, where)) != where:
            yield Mistake(where, f"= {port}: want a port of its own: {known} has it")


def _adapters_of_two_models(engines: list[tuple[int, dict[str, Any]]]) -> Iterator[Mistake]:
    owners: dict[str, Counter[str]] = {}
    for index, engine in engines:
        for adapter in map(str, _dict(engine.get("adapters"))):
            known = owners.setdefault(adapter, Counter())
            known[_served(engine)] += 1
            if len(known) > 1:
                yield Mistake(
                    place(("engines", index, "adapters", adapter)),
                    f": adapts {_served(engine)!r} here and {next(iter(known))!r} elsewhere: "
                    "want one name a base model",
                )


def _served(engine: Mapping[str, Any]) -> str:
    return str(engine.get("served_name") or default_served_name(engine))


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: object) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}
