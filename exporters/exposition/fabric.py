"""Ports of the fabric between hosts under the catalog's names."""

from collections.abc import Iterable, Mapping

from vramscope.exporters.catalog import fabric as catalog
from vramscope.exporters.catalog.metric import Metric
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.signals.fabric import FabricPort, fabric_utilization

__all__ = ["add_fabric"]


def add_fabric(families: Families, ports: Iterable[FabricPort], hostname: str) -> None:
    """Add all of ``ports``; what a port could not tell has no sample.

    Args:
        families: where to.
        ports: as ``FabricSource.read`` gives them: their counters only go up.
        hostname: of this host.
    """
    for port in ports:
        who = (port.device, str(port.port), hostname)
        numa_node = "" if port.numa_node is None else str(port.numa_node)
        families.add(
            catalog.FABRIC_PORT_INFO,
            1,
            *who,
            port.link_layer,
            port.speed,
            port.node_guid,
            port.system_image_guid,
            port.subnet_prefix,
            port.pci_bus_id,
            numa_node,
        )
        up = float(port.state == "active") if port.state else None
        families.add(catalog.FABRIC_PORT_UP, up, *who)
        families.add(catalog.FABRIC_CAPACITY, port.bytes_per_second_capacity, *who)
        _add_each(families, catalog.FABRIC_BYTES, port.bytes_total, who)
        _add_each(families, catalog.FABRIC_PACKETS, port.packets_total, who)
        _add_each(families, catalog.FABRIC_RATE, port.bytes_per_second, who)
        _add_each(families, catalog.FABRIC_UTILIZATION, fabric_utilization(port), who)
        _add_each(families, catalog.FABRIC_ERRORS, port.errors_total, who)
        _add_each(families, catalog.FABRIC_CONGESTION, port.congestion_total, who)
        families.add(catalog.FABRIC_XMIT_WAIT, port.xmit_wait_ticks_total, *who)


def _add_each(
    families: Families, metric: Metric, values: Mapping[str, float], who: tuple[str, ...]
) -> None:
    for key, value in values.items():
        families.add(metric, value, *who, key)
