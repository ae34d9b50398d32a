"""The web configuration file of Prometheus' exporter-toolkit: TLS, headers and users.

Keys, defaults and meanings are the toolkit's (its docs/web-configuration.md), so that a file
written for node_exporter works here. What we can't do is a mistake, never ignored.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from vramscope.exporters.errors import VramscopeError
from vramscope.exporters.exposition.tls_settings import (
    TLS_KEYS,
    TlsSettings,
    tls_problems,
    tls_settings,
)

__all__ = ["WebConfig", "read_web_config"]

HEADERS: Mapping[str, tuple[str, ...]] = {
    "Content-Security-Policy": (),
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff",),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-XSS-Protection": (),
}
"""The headers that may be set, with the values that they may have; any if none."""
BCRYPT_HASH = re.compile(r"\$2[abxy]\$(0[4-9]|[12][0-9]|3[01])\$[./A-Za-z0-9]{53}")

Tell = Callable[[str, str], None]
"""Takes the place of a mistake and what is wrong there."""


@dataclass(frozen=True, slots=True)
class WebConfig:
    """What the file says; an empty one serves in the clear, to anybody.

    Attributes:
        tls: None serves in the clear.
        headers: added to every answer.
        users: bcrypt hash by user name; empty lets everybody in.
    """

    tls: TlsSettings | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    users: Mapping[str, str] = field(default_factory=dict, repr=False)


def read_web_config(file: Path) -> WebConfig:
    """Read and check the file.

    Raises:
        VramscopeError: it can't be read, or has mistakes: all of them, one a line.
    """
    document = _load(file)
    mistakes: list[str] = []

    def tell(place: str, problem: str) -> None:
        mistakes.append(f"{file}: {place}{problem}" if place else f"{file}{problem}")

    top = _section(
        {"": {} if document is None else document},
        "",
        ("tls_server_config", "http_server_config", "basic_auth_users"),
        tell,
    )
    tls = _tls(top, file.parent, tell)
    headers = _headers(top, tell)
    users = _users(top, tell)
    if mistakes:
        raise VramscopeError("\n".join(mistakes))
    return WebConfig(tls, headers, users)


def _load(file: Path) -> object:
    try:
        loaded: object = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise VramscopeError(f"{file}: {error.strerror}: want a readable YAML file") from error
    except UnicodeDecodeError as error:
        raise VramscopeError(
            f"{file}: byte {error.start} is not UTF-8: want a text file"
        ) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise VramscopeError(
            f"{file}{where}: not YAML: {error.problem or error.context}"
        ) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise VramscopeError(f"{file}: not YAML: {' '.join(str(error).split())}") from error
    return loaded


def _section(
    parent: Mapping[str, object], key: str, known: tuple[str, ...] | None, tell: Tell
) -> dict[str, object]:
    """Return a mapping of ``parent``; tell of what is no mapping, and of unknown keys."""
    section = parent.get(key)
    if section is None:
        return {}
    if not isinstance(section, dict):
        tell(key, f" = {section!r}: want a mapping" if key else ": want a mapping")
        return {}
    for name in section:
        if known is not None and name not in known:
            place = f"{key}.{name}" if key else str(name)
            tell(place, f": unknown or not supported here: want one of {', '.join(known)}")
    return {str(name): value for name, value in section.items()}


def _tls(top: Mapping[str, object], folder: Path, tell: Tell) -> TlsSettings | None:
    place = "tls_server_config"
    given = _section(top, place, TLS_KEYS, tell)
    if not given:
        return None
    problems = list(tls_problems(given, folder))
    for key, problem in problems:
        tell(f"{place}.{key}", problem)
    return None if problems else tls_settings(given, folder)


def _headers(top: Mapping[str, object], tell: Tell) -> dict[str, str]:
    # http2 is the toolkit's: true by default, and no client depends on it. We speak HTTP/1.1.
    http = _section(top, "http_server_config", ("headers", "http2"), tell)
    place = "http_server_config.headers"
    given = _section({place: http.get("headers")}, place, tuple(HEADERS), tell)
    for name, value in given.items():
        allowed = HEADERS.get(name)
        if not isinstance(value, str) or not value.isprintable():
            tell(f"{place}.{name}", f" = {value!r}: want text on one line")
        elif allowed and value.lower() not in allowed:
            tell(f"{place}.{name}", f" = {value!r}: want one of {', '.join(allowed)}")
    return {name: str(value) for name, value in given.items()}


def _users(top: Mapping[str, object], tell: Tell) -> dict[str, str]:
    place = "basic_auth_users"
    given = _section(top, place, None, tell)
    for user, hashed in given.items():
        if ":" in user or not user:
            tell(f"{place}.{user}", ": want a user name without ':'")
        if not isinstance(hashed, str) or not BCRYPT_HASH.fullmatch(hashed):
            # Not shown: people put their password here.
            tell(f"{place}.{user}", ": want a bcrypt hash, made with: htpasswd -nBC 10 USER")
    return {user: str(hashed) for user, hashed in given.items()}
