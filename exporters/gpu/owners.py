"""Who uses the GPUs of this host: containers by the kubelet, batch jobs by their folder."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from vramscope.exporters.engine.host import Reading
from vramscope.exporters.errors import SourceUnavailableError
from vramscope.exporters.gpu.hpc_jobs import read_hpc_jobs
from vramscope.exporters.gpu.kubelet import DEFAULT_SOCKET, KubeletPods
from vramscope.exporters.gpu.owner import Owner
from vramscope.exporters.gpu.pod_resources import ContainerDevices
from vramscope.exporters.signals.gpu import GpuIdentity

__all__ = ["HPC_SOURCE", "KUBELET_SOURCE", "GpuOwners", "OwnerSource"]

KUBELET_SOURCE = "kubelet"
HPC_SOURCE = "hpc-jobs"

KEEP_S = 60.0
"""A kubelet restarts in seconds; without its labels each GPU would become another series."""

T = TypeVar("T")

REPLICA = "::"
GKE_REPLICA = "/vgpu"


@dataclass(frozen=True, slots=True)
class GpuOwners:
    """Who used which GPU at one refresh.

    Attributes:
        readings: what was asked, and why it failed where it did.
        containers: owners with pod, namespace and container, by device id without its replica.
        jobs: HPC job ids by GPU index.
    """

    readings: tuple[Reading, ...] = ()
    containers: Mapping[str, tuple[Owner, ...]] = field(default_factory=dict)
    jobs: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def owner(self, gpu: GpuIdentity) -> Owner:
        """Return the labels of a GPU's series."""
        containers, jobs = self._containers_of(gpu), self.jobs.get(gpu.index, ())
        only = containers[0] if len(containers) == 1 else Owner()
        return only._replace(
            hpc_job=jobs[0] if len(jobs) == 1 else "",
            shared="true" if len(containers) > 1 or len(jobs) > 1 else "",
        )

    def users(self, gpu: GpuIdentity) -> list[Owner]:
        """Return each container and each job that holds a GPU, however many share it."""
        jobs = [Owner(hpc_job=job) for job in self.jobs.get(gpu.index, ())]
        return [*self._containers_of(gpu), *jobs]

    def _containers_of(self, gpu: GpuIdentity) -> tuple[Owner, ...]:
        """Device ids are UUIDs from NVIDIA's device plugin, device files from GKE's."""
        by_name = f"nvidia{gpu.index if gpu.minor is None else gpu.minor}"
        if gpu.mig_instance:
            by_name += f"/gi{gpu.mig_instance}"
        return self.containers.get(gpu.uuid) or self.containers.get(by_name, ())


class OwnerSource:
    """Reads who uses the GPUs. One thread at a time.

    What fails is a reading with its error; its last answer holds for a minute.

    Args:
        kubelet_socket: None looks at the usual path, where this host has its folder.
        hpc_job_folder: None where no scheduler writes one.
        clock: monotonic, seconds.
    """

    def __init__(
        self,
        kubelet_socket: Path | None = None,
        hpc_job_folder: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # os.path, since pathlib raises where the parent may not be searched.
        if kubelet_socket is None and os.path.isdir(DEFAULT_SOCKET.parent):  # noqa: PTH112
            kubelet_socket = DEFAULT_SOCKET
        pods = KubeletPods(kubelet_socket, clock).read if kubelet_socket else None
        jobs = partial(read_hpc_jobs, hpc_job_folder) if hpc_job_folder else None
        self._pods = _Kept[list[ContainerDevices]](KUBELET_SOURCE, pods, [], clock)
        self._jobs = _Kept[dict[int, tuple[str, ...]]](HPC_SOURCE, jobs, {}, clock)

    def read(self) -> GpuOwners:
        """Ask what there is to ask; never raises, and takes at most the kubelet's 1 s."""
        devices, pods_reading = self._pods.read()
        jobs, jobs_reading = self._jobs.read()
        return GpuOwners((*pods_reading, *jobs_reading), _by_device(devices), jobs)


class _Kept(Generic[T]):
    """A source's last answer, for ``KEEP_S`` after it stopped to answer."""

    def __init__(
        self,
        source: str,
        read: Callable[[], T] | None,
        nothing: T,
        clock: Callable[[], float],
    ) -> None:
        self._source = source
        self._read = read
        self._nothing = self._last = nothing
        self._clock = clock
        self._answered_s = 0.0

    def read(self) -> tuple[T, tuple[Reading, ...]]:
        """Return what is known, and the reading: none for a source that is not there."""
        if self._read is None:
            return self._nothing, ()
        now = self._clock()
        try:
            self._last, self._answered_s = self._read(), now
        except SourceUnavailableError as error:
            if now - self._answered_s > KEEP_S:
                self._last = self._nothing
            return self._last, (Reading(self._source, error=str(error)),)
        return self._last, (Reading(self._source),)


def _by_device(devices: Iterable[ContainerDevices]) -> dict[str, tuple[Owner, ...]]:
    """Return the containers of each device, once each however many replicas one holds."""
    found: dict[str, dict[Owner, None]] = {}
    for held in devices:
        owner = Owner(held.pod, held.namespace, held.container)
        for device in held.device_ids:
            physical = device.split(REPLICA)[0].split(GKE_REPLICA)[0]
            found.setdefault(physical, {})[owner] = None
    return {device: tuple(owners) for device, owners in found.items()}
