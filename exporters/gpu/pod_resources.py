"""The answer of the kubelet's pod-resources ``List``, read from its protobuf bytes.

Five messages of ``v1.PodResourcesLister``, a few fields each: less to read, and to keep in step
with a protobuf runtime, than generated code. Fields not named here are skipped, so later
kubelets may add some.
"""

from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["ContainerDevices", "WireError", "decode_pod_resources"]

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

# ListPodResourcesResponse
POD_RESOURCES = 1
# PodResources
POD_NAME, POD_NAMESPACE, POD_CONTAINERS = 1, 2, 3
# ContainerResources
CONTAINER_NAME, CONTAINER_DEVICES = 1, 2
# ContainerDevices
RESOURCE_NAME, DEVICE_IDS, TOPOLOGY = 1, 2, 3
# TopologyInfo, NUMANode
NUMA_NODES, NUMA_ID = 1, 1


class WireError(Exception):
    """The bytes are not the message; says what was met and where."""


class ContainerDevices(NamedTuple):
    """Devices of one resource that one container holds."""

    namespace: str
    pod: str
    container: str
    resource: str
    """As the device plugin registered it: ``nvidia.com/gpu``, ``nvidia.com/mig-1g.10gb``."""
    device_ids: tuple[str, ...]
    numa_nodes: tuple[int, ...] = ()


def decode_pod_resources(data: bytes) -> list[ContainerDevices]:
    """Return what the containers of this node hold, in the kubelet's order.

    Args:
        data: an encoded ``ListPodResourcesResponse``.

    Raises:
        WireError: it is cut off, or not that message.
    """
    return [held for pod in _messages(data, POD_RESOURCES) for held in _devices_of_pod(pod)]


def _devices_of_pod(pod: bytes) -> Iterator[ContainerDevices]:
    name, namespace = _text(pod, POD_NAME), _text(pod, POD_NAMESPACE)
    for container in _messages(pod, POD_CONTAINERS):
        container_name = _text(container, CONTAINER_NAME)
        for devices in _messages(container, CONTAINER_DEVICES):
            yield ContainerDevices(
                namespace,
                name,
                container_name,
                _text(devices, RESOURCE_NAME),
                tuple(map(_decode_text, _messages(devices, DEVICE_IDS))),
                tuple(_numa_nodes(devices)),
            )


def _numa_nodes(devices: bytes) -> Iterator[int]:
    for topology in _messages(devices, TOPOLOGY):
        for node in _messages(topology, NUMA_NODES):
            # proto3 leaves out a 0, which is a node like any other.
            raw = next((v for n, v in _fields(node) if n == NUMA_ID and isinstance(v, int)), 0)
            yield raw - (1 << 64) if raw >> 63 else raw  # int64


def _messages(data: bytes, number: int) -> Iterator[bytes]:
    for found, value in _fields(data):
        if found == number:
            if not isinstance(value, bytes):
                raise WireError(f"field {number} is a number, want bytes")
            yield value


def _text(data: bytes, number: int) -> str:
    values = list(_messages(data, number))
    return _decode_text(values[-1]) if values else ""  # of several the last counts: protobuf


def _decode_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise WireError(f"{value[:20]!r} is not UTF-8") from error


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield (field number, value); a value of fixed width is skipped: no field here has one."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, wire_type = key >> 3, key & 7
        if number == 0:
            raise WireError(f"field number 0 before byte {position}")
        if wire_type == VARINT:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire_type == BYTES:
            size, position = _varint(data, position)
        elif wire_type in (FIXED32, FIXED64):
            size = 4 if wire_type == FIXED32 else 8
        else:
            raise WireError(f"wire type {wire_type} before byte {position}")
        if position + size > len(data):
            raise WireError(f"cut off: {size} bytes from byte {position}, have {len(data)}")
        if wire_type == BYTES:
            yield number, data[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Return an unsigned number of up to 64 bits and the position after it."""
    value = shift = 0
    while position < len(data):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >= 1 << 64:
                break
            return value, position
        shift += 7
        if shift >= 70:
            break
    raise WireError(f"cut off or overlong number before byte {position}")
