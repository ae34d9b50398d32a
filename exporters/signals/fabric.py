"""A port of the fabric between hosts (InfiniBand, RoCE, EFA), as a frozen value."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["FabricPort", "fabric_utilization"]


@dataclass(frozen=True, slots=True)
class FabricPort:
    """One port of one RDMA device at one moment; what can't be read is absent, never 0.

    Counters are as the device counts them (octets, packets); they may wrap or restart.

    Attributes:
        device: its name on the host, ``mlx5_0``.
        port: its number, from 1.
        read_at_s: moment of the read, monotonic clock.
        link_layer: ``infiniband``, ``ethernet`` (RoCE), ``unspecified`` (EFA); empty: not known.
        state: ``active``, ``down``, ``init``, ``armed``; empty: not known.
        speed: width and generation as negotiated, ``4X NDR``.
        bytes_per_second_capacity: what it carries in one direction at that speed; None for a
            port that is not up.
        bytes_total: counters by direction (``tx`` leaves the host). Of RoCE, RDMA traffic only.
        packets_total: counters by direction.
        errors_total: counters by the kernel's name of the file.
        congestion_total: packets that told of congestion, by the kernel's name of the file.
        xmit_wait_ticks_total: counter of device ticks with data to send and no credit.
        node_guid: of the device.
        system_image_guid: the same for all devices of one adapter.
        subnet_prefix: of the InfiniBand subnet, 16 hexadecimal digits; hosts that have it in
            common reach each other. The factory's default says nothing and is left empty.
        numa_node: of the host, that the device is attached to.
        pci_bus_id: ``0000:1b:00.0``.
        bytes_per_second: rates by direction, once there are two reads.
    """

    device: str
    port: int
    read_at_s: float
    link_layer: str = ""
    state: str = ""
    speed: str = ""
    bytes_per_second_capacity: float | None = None
    bytes_total: Mapping[str, float] = field(default_factory=dict)
    packets_total: Mapping[str, float] = field(default_factory=dict)
    errors_total: Mapping[str, float] = field(default_factory=dict)
    congestion_total: Mapping[str, float] = field(default_factory=dict)
    xmit_wait_ticks_total: float | None = None
    node_guid: str = ""
    system_image_guid: str = ""
    subnet_prefix: str = ""
    numa_node: int | None = None
    pci_bus_id: str = ""
    bytes_per_second: Mapping[str, float] = field(default_factory=dict)


def fabric_utilization(port: FabricPort) -> dict[str, float]:
    """Return the share of the capacity in use, by direction; empty when not known.

    >>> port = FabricPort(
    ...     "mlx5_0", 1, 0.0, bytes_per_second_capacity=50e9, bytes_per_second={"tx": 40e9}
    ... )
    >>> fabric_utilization(port)
    {'tx': 0.8}
    """
    capacity = port.bytes_per_second_capacity
    if not capacity:
        return {}
    return {direction: rate / capacity for direction, rate in port.bytes_per_second.items()}
