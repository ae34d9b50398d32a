"""Ports of RDMA devices (InfiniBand, RoCE, EFA) from sysfs: links, octets, errors, congestion.

Nothing here asks the fabric or needs a privilege. What a driver does not offer is absent.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from vramscope.exporters.gpu.link_rate import parse_rate
from vramscope.exporters.signals.fabric import FabricPort

__all__ = ["SYSFS", "read_port"]

SYSFS = Path("/sys/class/infiniband")

WORD_BYTES = 4
"""``port_xmit_data`` and ``port_rcv_data`` count 32-bit words, whatever the width of the link."""

WORDS = {"tx": "port_xmit_data", "rx": "port_rcv_data"}
PACKETS = {"tx": "port_xmit_packets", "rx": "port_rcv_packets"}
# EFA's and Broadcom's drivers count octets, and beside their other hardware counters.
HW_OCTETS = {"tx": "tx_bytes", "rx": "rx_bytes"}
HW_PACKETS = {"tx": "tx_pkts", "rx": "rx_pkts"}
ERRORS = (
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors",
    "port_rcv_constraint_errors",
    "port_xmit_discards",
    "port_xmit_constraint_errors",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "VL15_dropped",
)
HW_ERRORS = (
    "out_of_buffer",
    "out_of_sequence",
    "packet_seq_err",
    "implied_nak_seq_err",
    "local_ack_timeout_err",
    "rnr_nak_retry_err",
    "rx_drops",
)
HW_CONGESTION = ("np_cnp_sent", "np_ecn_marked_roce_packets", "rp_cnp_handled", "rp_cnp_ignored")
XMIT_WAIT = "port_xmit_wait"

FACTORY_PREFIX = "fe80000000000000"
_PCI_BUS_ID = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def read_port(device: Path, port: int, now_s: float) -> FabricPort:
    """Return one port as sysfs has it now; counters as the device counts them, without rates.

    Args:
        device: its folder, ``/sys/class/infiniband/mlx5_0``.
        port: its number.
        now_s: monotonic clock.

    Returns:
        A port without a ``state`` if the device is gone or may not be read.
    """
    folder = f"{device}/ports/{port}"
    counters, hw_counters = f"{folder}/counters", f"{folder}/hw_counters"
    layer = _text(f"{folder}/link_layer").lower()
    state = _text(f"{folder}/state").partition(": ")[2].lower()
    rate = parse_rate(_text(f"{folder}/rate"), layer) if state == "active" else None
    octets = {way: n * WORD_BYTES for way, n in _numbers(counters, WORDS).items()}
    return FabricPort(
        device=device.name,
        port=port,
        read_at_s=now_s,
        link_layer=layer,
        state=state,
        speed=rate.speed if rate else "",
        bytes_per_second_capacity=rate.bytes_per_second if rate else None,
        bytes_total=octets or _numbers(hw_counters, HW_OCTETS),
        packets_total=_numbers(counters, PACKETS) or _numbers(hw_counters, HW_PACKETS),
        errors_total=_named(counters, ERRORS) | _named(hw_counters, HW_ERRORS),
        congestion_total=_named(hw_counters, HW_CONGESTION),
        xmit_wait_ticks_total=_number(f"{counters}/{XMIT_WAIT}"),
        node_guid=_guid(f"{device}/node_guid"),
        system_image_guid=_guid(f"{device}/sys_image_guid"),
        subnet_prefix=_subnet_prefix(folder) if layer == "infiniband" else "",
        numa_node=_numa_node(device),
        pci_bus_id=_pci_bus_id(device),
    )


def _text(file: str) -> str:
    """Return a file's only line; empty where there is none, or no right to it.

    By descriptor and not by ``Path``: a host has hundreds of these files, read each refresh.
    """
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(fd, 4096).decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    finally:
        os.close(fd)


def _number(file: str) -> float | None:
    """Return a counter; None for none, and for the ``N/A (no PMA)`` of older kernels."""
    text = _text(file)
    return float(text) if text.isdecimal() else None


def _numbers(folder: str, files: dict[str, str]) -> dict[str, float]:
    read = ((key, _number(f"{folder}/{file}")) for key, file in files.items())
    return {key: value for key, value in read if value is not None}


def _named(folder: str, files: Iterable[str]) -> dict[str, float]:
    return _numbers(folder, {file: file for file in files})


def _guid(file: str) -> str:
    """Return 16 hexadecimal digits; empty for a GUID of zeros, which is none."""
    guid = _text(file).replace(":", "").lower()
    return guid if guid.strip("0") else ""


def _subnet_prefix(folder: str) -> str:
    prefix = _text(f"{folder}/gids/0").replace(":", "").lower()[:16]
    return "" if prefix in (FACTORY_PREFIX, "0" * 16) else prefix


def _numa_node(device: Path) -> int | None:
    node = _number(f"{device}/device/numa_node")  # -1, which is no node, is no number here
    return None if node is None else int(node)


def _pci_bus_id(device: Path) -> str:
    try:
        name = (device / "device").readlink().name
    except OSError:
        return ""
    return name if _PCI_BUS_ID.fullmatch(name) else ""
