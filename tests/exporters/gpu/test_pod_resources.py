"""Our reader of the kubelet's bytes against protobuf's own encoder."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vramscope.exporters.gpu.pod_resources import (
    ContainerDevices,
    WireError,
    decode_pod_resources,
)

descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
descriptor_pool = pytest.importorskip("google.protobuf.descriptor_pool")
message_factory = pytest.importorskip("google.protobuf.message_factory")

# k8s.io/kubelet/pkg/apis/podresources/v1, with fields that we skip: name, number, type.
MESSAGES = {
    "NUMANode": [("ID", 1, "int64")],
    "TopologyInfo": [("nodes", 1, "*NUMANode")],
    "ContainerDevices": [
        ("resource_name", 1, "string"),
        ("device_ids", 2, "*string"),
        ("topology", 3, "TopologyInfo"),
    ],
    "ContainerMemory": [("memory_type", 1, "string"), ("size", 2, "uint64")],
    "ContainerResources": [
        ("name", 1, "string"),
        ("devices", 2, "*ContainerDevices"),
        ("cpu_ids", 3, "*int64"),
        ("memory", 4, "*ContainerMemory"),
        ("a_later_field", 900, "fixed64"),
    ],
    "PodResources": [
        ("name", 1, "string"),
        ("namespace", 2, "string"),
        ("containers", 3, "*ContainerResources"),
    ],
    "ListPodResourcesResponse": [("pod_resources", 1, "*PodResources")],
}


def response_class() -> Any:
    """Build protobuf's ListPodResourcesResponse."""
    field_type = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="podresources.proto", package="v1")
    file.syntax = "proto3"
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field_name, number, kind in fields:
            field = message.field.add(name=field_name, number=number)
            field.label = (
                field_type.LABEL_REPEATED if kind.startswith("*") else field_type.LABEL_OPTIONAL
            )
            kind = kind.removeprefix("*")
            if kind in MESSAGES:
                field.type, field.type_name = field_type.TYPE_MESSAGE, f".v1.{kind}"
            else:
                field.type = getattr(field_type, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    name = "v1.ListPodResourcesResponse"
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def held(
    device_ids: list[str], numa_nodes: list[int], resource: str = "nvidia.com/gpu"
) -> dict[str, Any]:
    nodes = [{"ID": node} for node in numa_nodes]
    return {"resource_name": resource, "device_ids": device_ids, "topology": {"nodes": nodes}}


EXAMPLE = {
    "pod_resources": [
        {
            "name": "vllm-0",
            "namespace": "serving",
            "containers": [
                {
                    "name": "engine",
                    "devices": [
                        held(["GPU-a", "GPU-b"], [0, 1]),
                        held(["eth0"], [], "example.com/nic"),
                    ],
                    "cpu_ids": [1, 2, 300],
                    "memory": [{"memory_type": "memory", "size": 1 << 40}],
                    "a_later_field": 7,
                },
                {"name": "sidecar"},
            ],
        },
        {"name": "größer", "namespace": "dev", "containers": [{"name": "c", "devices": []}]},
        {"name": "mig", "containers": [{"devices": [held(["MIG-c"], [-1], "nvidia.com/mig-x")]}]},
    ]
}


def test_what_protobuf_wrote_is_what_we_read() -> None:
    data = response_class()(**EXAMPLE).SerializeToString()
    assert decode_pod_resources(data) == [
        ContainerDevices(
            "serving", "vllm-0", "engine", "nvidia.com/gpu", ("GPU-a", "GPU-b"), (0, 1)
        ),
        ContainerDevices("serving", "vllm-0", "engine", "example.com/nic", ("eth0",)),
        ContainerDevices("", "mig", "", "nvidia.com/mig-x", ("MIG-c",), (-1,)),
    ]


def test_node_without_pods_is_an_empty_answer() -> None:
    assert decode_pod_resources(b"") == []


names = st.text(max_size=12)
devices = st.builds(held, st.lists(names, max_size=3), st.lists(st.integers(0, 9), max_size=2))


@given(names, names, names, st.lists(devices, max_size=3))
def test_any_pod_comes_back_as_it_was(
    namespace: str, pod: str, container: str, held_devices: list[dict[str, Any]]
) -> None:
    containers = [{"name": container, "devices": held_devices}]
    pods = [{"name": pod, "namespace": namespace, "containers": containers}]
    data = response_class()(pod_resources=pods).SerializeToString()
    assert decode_pod_resources(data) == [
        ContainerDevices(
            namespace,
            pod,
            container,
            device["resource_name"],
            tuple(device["device_ids"]),
            tuple(node["ID"] for node in device["topology"]["nodes"]),
        )
        for device in held_devices
    ]


@given(st.binary(max_size=64))
def test_garbage_is_a_wire_error_or_a_message_and_nothing_else(data: bytes) -> None:
    with contextlib.suppress(WireError):
        assert isinstance(decode_pod_resources(data), list)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\x0a\x05ab", "cut off: 5 bytes from byte 2, have 4"),
        (b"\x0a", "cut off or overlong number"),
        (b"\x08" + b"\xff" * 11, "overlong number"),
        (b"\x08" + b"\xff" * 9 + b"\x7f", "overlong number"),
        (b"\x08\x01", "field 1 is a number, want bytes"),
        (b"\x0b", "wire type 3"),
        (b"\x02\x00", "field number 0"),
        (b"\x0a\x09\x0a\x01\xff\x1a\x04\x12\x02\x0a\x00", "is not UTF-8"),
        (b"HTTP/1.1 400 Bad Request\r\n", "wire type 4"),
    ],
)
def test_wrong_bytes_say_what_is_wrong(data: bytes, complaint: str) -> None:
    with pytest.raises(WireError, match=complaint):
        decode_pod_resources(data)
