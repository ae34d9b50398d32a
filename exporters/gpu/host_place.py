"""Where a host stands among others: its rack, and the island of hosts it shares a fabric with."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vramscope.exporters.signals.fabric import FabricPort

__all__ = ["HostPlace", "host_place"]


@dataclass(frozen=True, slots=True)
class HostPlace:
    """Levels above the host; empty is not known.

    Attributes:
        rack: as configured.
        island: hosts of the same island reach each other over one fabric: as configured, else
            ``ib-<subnet prefix>`` where the host's InfiniBand ports agree on one.
    """

    rack: str = ""
    island: str = ""


def host_place(
    rack: str,
    island: str,
    ports: Iterable[FabricPort],
    environment: Mapping[str, str] = os.environ,
) -> HostPlace:
    """Return a host's place: what is configured, else what its InfiniBand subnet says.

    A factory's default subnet prefix says nothing, since every fabric has it until somebody
    gives it one; nor do ports of several subnets.

    Args:
        rack: empty: ``$VRAMSCOPE_RACK``.
        island: empty: ``$VRAMSCOPE_ISLAND``.
        ports: of this host.
        environment: variables.

    >>> port = FabricPort("mlx5_0", 1, 0.0, state="active", subnet_prefix="fe80000000000007")
    >>> host_place("r12", "", [port], {})
    HostPlace(rack='r12', island='ib-fe80000000000007')
    """
    prefixes = {port.subnet_prefix for port in ports if port.state == "active"} - {""}
    subnet = f"ib-{prefixes.pop()}" if len(prefixes) == 1 else ""
    return HostPlace(
        rack or environment.get("VRAMSCOPE_RACK", ""),
        island or environment.get("VRAMSCOPE_ISLAND", "") or subnet,
    )
