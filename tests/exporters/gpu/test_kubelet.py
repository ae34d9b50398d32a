"""The pods of GPUs, from a kubelet that is a real gRPC server on a real socket."""

import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from vramscope.exporters.engine.host import Reading
from vramscope.exporters.errors import SourceUnavailableError
from vramscope.exporters.gpu.kubelet import KubeletPods
from vramscope.exporters.gpu.owner import Owner
from vramscope.exporters.gpu.owners import OwnerSource
from vramscope.exporters.signals.gpu import GpuIdentity


def field(number: int, *values: bytes | str) -> bytes:
    """Encode values of under 16 KiB as a protobuf field."""
    out = b""
    for value in values:
        data = value.encode() if isinstance(value, str) else value
        size = len(data)
        length = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
        out += bytes([number << 3 | 2]) + length + data
    return out


def pod(name: str, *device_ids: str, resource: str = "nvidia.com/gpu") -> bytes:
    """Encode a pod of namespace ``serving`` with one container ``engine`` that holds devices."""
    devices = field(1, resource) + field(2, *device_ids)
    container = field(1, "engine") + field(2, devices)
    return field(1, field(1, name) + field(2, "serving") + field(3, container))


class Kubelet:
    """A kubelet whose answer a test may change; ``hang`` holds answers back."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answer = b""
        self.asked = 0
        self.go_on = threading.Event()
        self.go_on.set()
        self._server: Any = None

    def start(self, service: str = "v1.PodResourcesLister") -> None:
        handler = grpc.unary_unary_rpc_method_handler(self._list)
        self._server = grpc.server(ThreadPoolExecutor(2))
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, {"List": handler}),)
        )
        self._server.add_insecure_port(f"unix://{self.path}")
        self._server.start()

    def _list(self, request: bytes, context: Any) -> bytes:
        assert request == b""
        self.asked += 1
        self.go_on.wait()
        return self.answer

    def stop(self) -> None:
        self.go_on.set()
        if self._server is not None:
            self._server.stop(None).wait()
            self._server = None


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[Kubelet]:
    kubelet = Kubelet(tmp_path / "kubelet.sock")
    yield kubelet
    kubelet.stop()


class Clock:
    """Stands still until a test moves it."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def gpu(uuid: str, index: int = 0, mig_instance: str = "") -> GpuIdentity:
    return GpuIdentity(index, uuid, mig_instance=mig_instance)


def test_container_that_holds_a_gpu_owns_it(kubelet: Kubelet, clock: Clock) -> None:
    kubelet.answer = pod("vllm-0", "GPU-a", "GPU-b")
    kubelet.start()
    owners = OwnerSource(kubelet.path, clock=clock).read()
    assert owners.readings == (Reading("kubelet"),)
    assert owners.owner(gpu("GPU-b")) == Owner("vllm-0", "serving", "engine")
    assert owners.owner(gpu("GPU-c")) == Owner()


def test_mig_instance_has_its_own_owner_and_its_gpu_none(kubelet: Kubelet, clock: Clock) -> None:
    first = pod("a", "MIG-1", resource="nvidia.com/mig-1g.10gb")
    kubelet.answer = first + pod("b", "MIG-2", resource="nvidia.com/mig-3g.40gb")
    kubelet.start()
    owners = OwnerSource(kubelet.path, clock=clock).read()
    assert owners.owner(gpu("MIG-1", mig_instance="7")).pod == "a"
    assert owners.owner(gpu("MIG-2", mig_instance="2")).pod == "b"
    assert owners.owner(gpu("GPU-a")) == Owner()


def test_time_sliced_gpu_is_shared_and_nobodys(kubelet: Kubelet, clock: Clock) -> None:
    shared = "nvidia.com/gpu.shared"
    kubelet.answer = pod("a", "GPU-a::0", "GPU-a::2", resource=shared)
    kubelet.answer += pod("b", "GPU-a::1", resource=shared)
    kubelet.start()
    owners = OwnerSource(kubelet.path, clock=clock).read()
    assert owners.owner(gpu("GPU-a")) == Owner(shared="true")
    assert [user.pod for user in owners.users(gpu("GPU-a"))] == ["a", "b"]


def test_replicas_of_one_container_are_not_shared(kubelet: Kubelet, clock: Clock) -> None:
    kubelet.answer = pod("a", "GPU-a::0", "GPU-a::1", resource="nvidia.com/gpu.shared")
    kubelet.start()
    owners = OwnerSource(kubelet.path, clock=clock).read()
    assert owners.owner(gpu("GPU-a")) == Owner("a", "serving", "engine")


def test_time_sliced_mig_instance_is_shared(kubelet: Kubelet, clock: Clock) -> None:
    kubelet.answer = pod("a", "MIG-1::0", resource="nvidia.com/mig-1g.10gb.shared")
    kubelet.answer += pod("b", "MIG-1::1", resource="nvidia.com/mig-1g.10gb.shared")
    kubelet.start()
    owners = OwnerSource(kubelet.path, clock=clock).read()
    assert owners.owner(gpu("MIG-1", mig_instance="7")).shared == "true"


@pytest.mark.parametrize(
    ("device_id", "identity"),
    [
        ("nvidia3", gpu("GPU-x", 3)),
        ("nvidia3", GpuIdentity(0, "GPU-x", minor=3)),
        ("nvidia3/vgpu1", gpu("GPU-x", 3)),
        ("nvidia3/gi5", gpu("MIG-x", 3, "5")),
    ],
)
def test_device_names_of_gke_are_known(
    kubelet: Kubelet, clock: Clock, device_id: str, identity: GpuIdentity
) -> None:
    kubelet.answer = pod("a", device_id)
    kubelet.start()
    owners = OwnerSource(kubelet.path, clock=clock).read()
    assert owners.owner(identity).pod == "a"
    assert owners.owner(gpu("GPU-y", 4)) == Owner()


def test_devices_of_other_vendors_are_left_out(kubelet: Kubelet, clock: Clock) -> None:
    kubelet.answer = pod("a", "nvidia0", resource="example.com/nic")
    kubelet.start()
    assert KubeletPods(kubelet.path, clock).read() == []


def test_kubelet_is_asked_once_in_five_seconds(kubelet: Kubelet, clock: Clock) -> None:
    kubelet.start()
    pods = KubeletPods(kubelet.path, clock)
    for _ in range(10):
        pods.read()
    assert kubelet.asked == 1
    clock.now_s += 5
    pods.read()
    assert kubelet.asked == 2


def error_of(pods: KubeletPods) -> str:
    with pytest.raises(SourceUnavailableError) as raised:
        pods.read()
    return str(raised.value)


def test_hanging_kubelet_costs_its_deadline_once_in_five_seconds(
    kubelet: Kubelet, clock: Clock
) -> None:
    kubelet.go_on.clear()
    kubelet.start()
    pods = KubeletPods(kubelet.path, clock)
    start_s = time.monotonic()
    assert "DEADLINE_EXCEEDED" in error_of(pods)
    assert 0.9 < time.monotonic() - start_s < 3
    start_s = time.monotonic()
    assert "DEADLINE_EXCEEDED" in error_of(pods)
    assert time.monotonic() - start_s < 0.5
    assert kubelet.asked == 1


def test_owners_outlive_a_kubelets_restart_by_a_minute(kubelet: Kubelet, clock: Clock) -> None:
    kubelet.answer = pod("a", "GPU-a")
    kubelet.start()
    source = OwnerSource(kubelet.path, clock=clock)
    source.read()
    kubelet.stop()
    clock.now_s += 5
    owners = source.read()
    (reading,) = owners.readings
    assert reading.source == "kubelet"
    assert "kubelet.sock" in (reading.error or "")
    assert owners.owner(gpu("GPU-a")).pod == "a"
    clock.now_s += 56
    assert source.read().owner(gpu("GPU-a")) == Owner()
    kubelet.answer = pod("b", "GPU-a")
    kubelet.start()
    clock.now_s += 5
    owners = source.read()
    assert owners.readings == (Reading("kubelet"),)
    assert owners.owner(gpu("GPU-a")).pod == "b"


@pytest.mark.parametrize("answer", [b"\x0a\xff\xff\xff\xff", b"not protobuf at all"])
def test_garbage_is_an_error_that_says_so(kubelet: Kubelet, clock: Clock, answer: bytes) -> None:
    kubelet.answer = answer
    kubelet.start()
    assert "is not a v1 ListPodResourcesResponse" in error_of(KubeletPods(kubelet.path, clock))


def test_kubelet_without_the_v1_service_is_an_error(kubelet: Kubelet, clock: Clock) -> None:
    kubelet.start(service="v1alpha1.PodResourcesLister")
    assert "UNIMPLEMENTED" in error_of(KubeletPods(kubelet.path, clock))


def test_server_that_speaks_no_grpc_is_an_error(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "kubelet.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        stop = threading.Thread(target=answer_in_http, args=(listener,))
        stop.start()
        try:
            assert "List failed" in error_of(KubeletPods(path, clock))
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            stop.join()


def answer_in_http(listener: socket.socket) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return  # the test shut it down
        with connection:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_socket_that_nobody_serves_is_an_error(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "kubelet.sock"
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(path))
    assert "UNAVAILABLE" in error_of(KubeletPods(path, clock))


@pytest.mark.parametrize("make", [lambda _: None, Path.touch, Path.mkdir])
def test_no_socket_says_what_to_look_at(
    tmp_path: Path, clock: Clock, make: Callable[[Path], object]
) -> None:
    path = tmp_path / "kubelet.sock"
    make(path)
    assert error_of(KubeletPods(path, clock)) == (
        f"{path}: no such socket: the kubelet is not running, or its folder is not mounted"
    )


def test_without_grpcio_the_error_names_the_extra(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    assert "pip install 'vramscope[kubernetes]'" in error_of(KubeletPods(tmp_path / "s", clock))
