"""Who uses which GPU, as metric families."""

from collections.abc import Iterable

from vramscope.exporters.catalog import owners as catalog
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.gpu.engines import EngineGpu
from vramscope.exporters.gpu.owners import GpuOwners
from vramscope.exporters.signals.gpu import GpuIdentity

__all__ = ["add_engine_gpus", "add_gpu_users"]


def add_engine_gpus(families: Families, engine_gpus: Iterable[EngineGpu]) -> None:
    """Add the GPUs of engines; a rank that is not known is an empty label."""
    for engine, dp_rank, uuid, rank in engine_gpus:
        known = "" if rank is None else str(rank)
        families.add(catalog.ENGINE_GPU_INFO, 1, engine, str(dp_rank), uuid, known)


def add_gpu_users(
    families: Families, gpus: Iterable[GpuIdentity], owners: GpuOwners, hostname: str
) -> None:
    """Add each container and job that holds one of ``gpus``, on this host."""
    for gpu in gpus:
        for user in owners.users(gpu):
            who = (user.pod, user.namespace, user.container, user.hpc_job)
            families.add(catalog.GPU_USER_INFO, 1, str(gpu.index), gpu.uuid, hostname, *who)
