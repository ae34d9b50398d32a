"""YAML read from a file: no code, no duplicate keys, and every complaint says where."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from vramscope.controller.errors import ConfigError
from vramscope.controller.mistakes import Mistake, place

__all__ = ["read_yaml"]


def read_yaml(file: Path) -> tuple[object, list[Mistake]]:
    """Return the file's value and its duplicate keys (of which the last one counts).

    Raises:
        ConfigError: the file can't be read, is not UTF-8, or is not YAML.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}: want a readable YAML file") from error
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{file}: byte {error.start} is not UTF-8: want a text file in UTF-8"
        ) from error
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        # safe_load resolves merges and anchors for us; composing twice is cheap for a config.
        value = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        raise ConfigError(f"{file}{_position(error)}: not YAML: {_reason(error)}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # ValueError: a date such as 2024-13-01; YAMLError unmarked: a control character.
        reason = " ".join(str(error).split())
        raise ConfigError(f"{file}: not YAML: {reason}") from error
    return value, sorted(_duplicates(node)) if node is not None else []


def _duplicates(root: yaml.Node) -> Iterator[Mistake]:
    """Yield the keys that occur twice in one mapping, each with its line."""
    seen_nodes: set[int] = set()  # an anchor may lead back to its own parent
    todo: list[tuple[yaml.Node, tuple[str | int, ...]]] = [(root, ())]
    while todo:
        node, path = todo.pop()
        if id(node) in seen_nodes:
            continue
        seen_nodes.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            todo += [(child, (*path, index)) for index, child in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            first_line: dict[tuple[str, str], int] = {}
            for key, child in node.value:
                here = (*path, str(key.value))
                line = key.start_mark.line + 1
                known = first_line.get((key.tag, str(key.value)))
                if known is None:
                    first_line[key.tag, str(key.value)] = line
                else:
                    yield Mistake(
                        place(here),
                        f": duplicate key on line {line}, first on line {known}: want it once",
                    )
                todo.append((child, here))


def _position(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return f":{mark.line + 1}:{mark.column + 1}" if mark else ""


def _reason(error: yaml.MarkedYAMLError) -> str:
    return " ".join((error.problem or error.context or str(error)).split())
