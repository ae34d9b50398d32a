"""Which pages to read: ``--scrape URL`` or ``--scrape NAME=URL``."""

import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from vramscope.exporters.errors import VramscopeError

__all__ = ["Target", "parse_targets"]

EXAMPLE = "http://127.0.0.1:8000/metrics or small=http://127.0.0.1:8000/metrics"


@dataclass(frozen=True, slots=True)
class Target:
    """One /metrics page.

    Attributes:
        name: the ``engine`` label of its series.
        url: where it is.
        local_port: TCP port, when the address is one of this host's; None when it is not.
    """

    name: str
    url: str
    local_port: int | None = None


def parse_targets(texts: Iterable[str]) -> tuple[Target, ...]:
    """Return the targets of the ``--scrape`` options.

    Raises:
        VramscopeError: some are not understood, or two have one name; says each.
    """
    targets, complaints = list[Target](), list[str]()
    for text in texts:
        try:
            targets.append(_parse(text))
        except ValueError as error:
            complaints.append(f"--scrape {_without_secret(text)}: {error}")
    names = [target.name for target in targets]
    complaints += [
        f"--scrape: {name!r} {names.count(name)} times: want a name of its own for each page"
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    if complaints:
        raise VramscopeError("\n".join(complaints))
    return tuple(targets)


def _parse(text: str) -> Target:
    scheme_at, equals_at = text.find("://"), text.find("=")
    named = 0 <= equals_at < scheme_at
    name, url = (text[:equals_at], text[equals_at + 1 :]) if named else ("", text)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"want {EXAMPLE}")
    if parts.username is not None:
        raise ValueError("want no user or password in it: every user of the host can read it")
    if named and not name:
        raise ValueError(f"want a name before the '=': {EXAMPLE}")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if parts.path in ("", "/"):
        parts = parts._replace(path="/metrics")
    own = _is_own_address(parts.hostname or "")
    return Target(name or parts.netloc, parts.geturl(), port if own else None)


def _is_own_address(host: str) -> bool:
    """Whether an address is of this host; asks no name server, so of names it knows two."""
    if host in ("localhost", socket.gethostname()):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))  # succeeds on the host's own addresses only
        except OSError:
            return False
    return True


def _without_secret(text: str) -> str:
    """Return the text with what is before an ``@`` left out: it may be a password."""
    head, at, tail = text.rpartition("@")
    return f"{head.partition('://')[0]}://...@{tail}" if at else text
