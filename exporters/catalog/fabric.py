"""Metrics of the fabric between hosts: InfiniBand, RoCE and EFA ports."""

from vramscope.exporters.catalog.metric import Metric

__all__ = ["FABRIC_METRICS"]

PORT = ("device", "port", "hostname")
WAY = (*PORT, "direction")

FABRIC_PORT_INFO = Metric(
    "vramscope_fabric_port_info",
    "gauge",
    "",
    "1 for each port of an RDMA device, with its link, the GUIDs of its device and adapter, and "
    "where it is attached.",
    (
        *PORT,
        "link_layer",
        "speed",
        "node_guid",
        "system_image_guid",
        "subnet_prefix",
        "pci_bus_id",
        "numa_node",
    ),
)
FABRIC_PORT_UP = Metric(
    "vramscope_fabric_port_up",
    "gauge",
    "",
    "1 when a port is active, 0 in any other state.",
    PORT,
)
FABRIC_CAPACITY = Metric(
    "vramscope_fabric_capacity_bytes_per_second",
    "gauge",
    "bytes per second",
    "What an active port carries in one direction at the speed it has negotiated.",
    PORT,
)
FABRIC_BYTES = Metric(
    "vramscope_fabric_bytes_total",
    "counter",
    "bytes",
    "Bytes by direction (tx leaves the host); of RoCE, RDMA traffic only.",
    WAY,
)
FABRIC_PACKETS = Metric(
    "vramscope_fabric_packets_total",
    "counter",
    "packets",
    "Packets by direction; of RoCE, RDMA traffic only.",
    WAY,
)
FABRIC_RATE = Metric(
    "vramscope_fabric_bytes_per_second",
    "gauge",
    "bytes per second",
    "Bytes per second by direction since the refresh before.",
    WAY,
)
FABRIC_UTILIZATION = Metric(
    "vramscope_fabric_utilization_ratio",
    "gauge",
    "ratio",
    "Share of a port's capacity in use, by direction, since the refresh before.",
    WAY,
)
FABRIC_ERRORS = Metric(
    "vramscope_fabric_errors_total",
    "counter",
    "errors",
    "Errors of a port, by the kernel's name of the counter; old devices stop at 255 or 65535.",
    (*PORT, "kind"),
)
FABRIC_CONGESTION = Metric(
    "vramscope_fabric_congestion_packets_total",
    "counter",
    "packets",
    "Packets that told of congestion, by the kernel's name of the counter.",
    (*PORT, "kind"),
)
FABRIC_XMIT_WAIT = Metric(
    "vramscope_fabric_xmit_wait_ticks_total",
    "counter",
    "ticks",
    "Device ticks in which a port had data to send and the other end had no room for it.",
    PORT,
)

FABRIC_METRICS: tuple[Metric, ...] = (
    FABRIC_PORT_INFO,
    FABRIC_PORT_UP,
    FABRIC_CAPACITY,
    FABRIC_BYTES,
    FABRIC_PACKETS,
    FABRIC_RATE,
    FABRIC_UTILIZATION,
    FABRIC_ERRORS,
    FABRIC_CONGESTION,
    FABRIC_XMIT_WAIT,
)
