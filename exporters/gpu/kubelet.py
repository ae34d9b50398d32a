"""Which containers of this node hold which GPUs, by the kubelet's pod-resources socket."""

import time
from collections.abc import Callable
from pathlib import Path

from vramscope.exporters.errors import SourceUnavailableError
from vramscope.exporters.gpu.pod_resources import (
    ContainerDevices,
    WireError,
    decode_pod_resources,
)

__all__ = ["DEFAULT_SOCKET", "KubeletPods"]

DEFAULT_SOCKET = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
METHOD = "/v1.PodResourcesLister/List"
RESOURCE_PREFIX = "nvidia.com/"
"""``nvidia.com/gpu``, ``nvidia.com/mig-*``, ``nvidia.com/gpu.shared``."""

DEADLINE_S = 1.0
ASK_EVERY_S = 5.0
MOST_ANSWER_BYTES = 16 * 1024 * 1024


class KubeletPods:
    """Asks the kubelet at most every 5 s; between, and after a failure, answers at once.

    Each question has a connection of its own: a kept one would wait out its own backoff after
    a kubelet's restart, and has nothing to gain at this rate.
    """

    def __init__(
        self, socket: Path = DEFAULT_SOCKET, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._socket = socket
        self._clock = clock
        self._asked_s: float | None = None
        self._devices: list[ContainerDevices] = []
        self._error: str | None = None

    def read(self) -> list[ContainerDevices]:
        """Return the GPUs that containers hold, as of the last answer.

        Raises:
            SourceUnavailableError: the last question had no answer within 1 s, or a wrong one.
        """
        now = self._clock()
        if self._asked_s is None or now - self._asked_s >= ASK_EVERY_S:
            self._asked_s = now
            try:
                self._devices, self._error = _gpus(_ask(self._socket)), None
            except SourceUnavailableError as error:
                self._error = str(error)
        if self._error is not None:
            raise SourceUnavailableError(self._error)
        return self._devices


def _gpus(devices: list[ContainerDevices]) -> list[ContainerDevices]:
    return [held for held in devices if held.resource.startswith(RESOURCE_PREFIX)]


def _ask(socket: Path) -> list[ContainerDevices]:
    """Ask once."""
    try:
        import grpc
    except ModuleNotFoundError as error:
        raise SourceUnavailableError(
            f"{socket}: Python package 'grpcio' is not installed: "
            "pip install 'vramscope[kubernetes]'"
        ) from error
    try:
        found = socket.is_socket()
    except OSError as error:
        raise SourceUnavailableError(f"{socket}: {error.strerror}") from error
    if not found:
        raise SourceUnavailableError(
            f"{socket}: no such socket: the kubelet is not running, or its folder is not mounted"
        )
    limit = ("grpc.max_receive_message_length", MOST_ANSWER_BYTES)
    # An authority by hand: the default is the socket's path, which is none to an HTTP/2 server.
    options = (limit, ("grpc.default_authority", "localhost"), ("grpc.enable_http_proxy", 0))
    with grpc.insecure_channel(f"unix://{socket.absolute()}", options=options) as channel:
        # Bytes in and out: an exception in a deserializer would become grpc's log line.
        ask = channel.unary_unary(METHOD, request_serializer=None, response_deserializer=None)
        try:
            answer: bytes = ask(b"", timeout=DEADLINE_S)  # ListPodResourcesRequest has no fields
        except grpc.RpcError as error:
            raise SourceUnavailableError(f"{socket}: {_reason(error)}") from error
    try:
        return decode_pod_resources(answer)
    except WireError as error:
        raise SourceUnavailableError(
            f"{socket}: the answer is not a v1 ListPodResourcesResponse: {error}"
        ) from error


def _reason(error: object) -> str:
    """Return a line from grpc's error, which is a call and has both."""
    code, details = getattr(error, "code", None), getattr(error, "details", None)
    name = code().name if code else type(error).__name__
    text = details() if details else ""
    return f"List failed: {name}: {' '.join(str(text).split())[:200]}"
