"""Ports for engines and sockets for listeners, checked before anything is started."""

import random
import socket
from collections.abc import Sequence
from pathlib import Path

from vramscope.controller.config import EngineConfig, Listener
from vramscope.controller.errors import AddressInUseError

__all__ = ["engine_ports", "listen"]

ENGINE_HOST = "127.0.0.1"
LOWEST_PICKED_PORT = 20000
PICK_ATTEMPTS = 1000
BACKLOG = 1024


def listen(setting: str, address: Listener) -> socket.socket:
    """Bind a listener's address; connections are refused until somebody serves it.

    Args:
        setting: name of the listener in the file, for the message.
        address: where; port 0 takes a free one.

    Raises:
        AddressInUseError: the address is taken, unknown or not allowed.
    """
    try:
        family, kind, proto, _, target = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, proto)
    except OSError as error:
        raise AddressInUseError(
            f"{setting}.host = {address.host!r}: {error.strerror}: "
            "want a name or an IP address of this machine, e.g. 127.0.0.1"
        ) from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(target)
        # Only for taking over what an earlier run left in TIME_WAIT: with it still on, a
        # second process could bind the same address before either of them listens.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    except OSError as error:
        bound.close()
        raise AddressInUseError(
            f"{setting}: can't listen on {address.host}:{address.port}: {error.strerror}: "
            f"want a free address, or {setting}.port: 0 to pick a free port"
        ) from error
    return bound


def engine_ports(engines: Sequence[EngineConfig]) -> list[int]:
    """Return a port for each engine: its own, checked to be free, or a picked one.

    Raises:
        AddressInUseError: with one line for each configured port that is taken.
    """
    taken = [
        f"engine {engine.name}: port {engine.port} on {ENGINE_HOST}: {reason}: "
        "want a free port, or port: 0 to pick one"
        for engine in engines
        if engine.port and (reason := why_not_free(engine.port))
    ]
    if taken:
        raise AddressInUseError("\n".join(taken))
    used = {engine.port for engine in engines}
    ports: list[int] = []
    for engine in engines:
        port = engine.port or _pick(used)
        used.add(port)
        ports.append(port)
    return ports


def why_not_free(port: int) -> str | None:
    """Return why nobody could listen on a port of 127.0.0.1 now, or None when one could."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ENGINE_HOST, port))
        except OSError as error:
            return error.strerror or str(error)
    return None


def _pick(used: set[int]) -> int:
    """Return a free port below the kernel's ephemeral range.

    An engine listens seconds after it was started, and meanwhile it and its neighbours ask
    the kernel for ephemeral ports of their own. A port outside that range is never handed
    out by the kernel, so only somebody who asks for exactly this one could take it.
    """
    highest = _ephemeral_range_start() - 1
    if highest > LOWEST_PICKED_PORT:
        for _ in range(PICK_ATTEMPTS):
            # At random, so that two controllers starting at once don't meet.
            port = random.randint(LOWEST_PICKED_PORT, highest)  # noqa: S311 - not a secret
            if port not in used and why_not_free(port) is None:
                return port
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((ENGINE_HOST, 0))
        return int(probe.getsockname()[1])


def _ephemeral_range_start() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        return 0  # not Linux: let the kernel pick
