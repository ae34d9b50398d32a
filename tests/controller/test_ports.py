"""Ports are checked before anything starts, and picked where the kernel hands none out."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vramscope.controller.config import AdminConfig
from vramscope.controller.errors import AddressInUseError
from vramscope.controller.ports import engine_ports, listen

Make = Callable[..., Any]


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_every_engine_port_in_use_is_said(engine_config: Make, taken: int) -> None:
    configs = [engine_config("a", port=taken), engine_config("b"), engine_config("c", port=taken)]
    with pytest.raises(AddressInUseError) as caught:
        engine_ports(configs)
    assert str(caught.value).splitlines() == [
        f"engine {name}: port {taken} on 127.0.0.1: Address already in use: "
        "want a free port, or port: 0 to pick one"
        for name in "ac"
    ]


def test_picked_ports_differ_and_lie_below_the_ephemeral_range(engine_config: Make) -> None:
    ports = engine_ports([engine_config(f"e{number}") for number in range(50)])
    assert len(set(ports)) == 50
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(1024 < port < first for port in ports)


def test_a_configured_port_is_kept_and_not_picked_again(engine_config: Make) -> None:
    free = engine_ports([engine_config("a")])[0]
    ports = engine_ports([engine_config("a"), engine_config("b", port=free)])
    assert ports[1] == free
    assert ports[0] != free


def test_a_listeners_address_in_use_is_one_line(taken: int) -> None:
    with pytest.raises(
        AddressInUseError,
        match=rf"^admin: can't listen on 127\.0\.0\.1:{taken}: Address already in use: want ",
    ):
        listen("admin", AdminConfig(port=taken))


def test_two_that_bind_before_they_listen_dont_share_an_address() -> None:
    with listen("admin", AdminConfig(port=0)) as first:
        port = first.getsockname()[1]
        with pytest.raises(AddressInUseError):
            listen("admin", AdminConfig(port=port))


def test_a_host_that_is_not_ours_is_one_line() -> None:
    with pytest.raises(AddressInUseError, match=r"^front_door: can't listen on 192\.0\.2\.1:0: "):
        listen("front_door", AdminConfig(host="192.0.2.1", port=0))
    with pytest.raises(AddressInUseError, match=r"^front_door.host = '::::': "):
        listen("front_door", AdminConfig(host="::::", port=0))
