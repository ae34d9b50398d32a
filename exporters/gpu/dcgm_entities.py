"""Which GPUs, MIG instances and NVLinks a host engine knows, and who they are."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from vramscope.exporters.gpu.dcgm_engine import (
    GPU,
    GPU_INSTANCE,
    LINK,
    LIVE_DATA,
    Engine,
    Key,
    said,
)
from vramscope.exporters.gpu.dcgm_values import Missing, text
from vramscope.exporters.signals.gpu import GpuIdentity

__all__ = ["Entity", "enumerate_gpus", "find_gpus", "find_links", "link_states"]

DRIVER_VERSION, NVML_VERSION, NAME, BRAND, SERIAL, UUID, MINOR = 1, 2, 50, 51, 53, 54, 55
INFOROM_AND_VBIOS = (56, 80, 81, 82, 85)
NEVER_CHANGE = (
    *(DRIVER_VERSION, NVML_VERSION, NAME, BRAND, SERIAL, UUID, MINOR),
    *INFOROM_AND_VBIOS,
)

DISABLED, DOWN, UP = 1, 2, 3
"""States of an NVLink; 0 is a link that the GPU does not have."""


@dataclass(frozen=True, slots=True)
class Entity:
    """A GPU, MIG instance or NVLink that DCGM knows.

    Attributes:
        key: its entity group and id.
        gpu: which GPU or MIG instance; of a link, the GPU it is on.
        link: number of a link, else None.
        constants: values by field id that never change.
    """

    key: Key
    gpu: GpuIdentity
    link: int | None = None
    constants: Mapping[int, float | str] = field(default_factory=dict)

    @property
    def whole_uuid(self) -> str:
        """UUID of the GPU it is or is a part of."""
        return self.gpu.parent_uuid or self.gpu.uuid


def enumerate_gpus(engine: Engine) -> tuple[Key, ...]:
    """Return the keys of the GPUs and MIG instances there are now."""
    gpus = ((GPU, int(i)) for i in engine.discovery.GetAllSupportedGpuIds())
    return (*gpus, *((GPU_INSTANCE, i) for i in _ids(engine, GPU_INSTANCE)))


def find_gpus(engine: Engine, keys: tuple[Key, ...]) -> tuple[list[Entity], dict[str, str]]:
    """Return the GPUs and MIG instances of some keys, and the GPUs that can't be identified.

    Returns:
        Entities, GPUs first; and reasons by DCGM's id of the GPU.
    """
    gpus: dict[int, Entity] = {}
    errors: dict[str, str] = {}
    for group, i in keys:
        if group != GPU:
            continue
        try:
            gpus[i] = _gpu(engine, i)
        except engine.bindings.error as error:
            if engine.gone(error):
                raise
            errors[str(i)] = said(error)
    instances = _instances(engine, gpus) if any(k[0] == GPU_INSTANCE for k in keys) else []
    return [*gpus.values(), *instances], errors


def find_links(engine: Engine, gpus: list[Entity]) -> list[Entity]:
    """Return the NVLinks of some GPUs; none before DCGM 4.6."""
    by_id = {entity.key[1]: entity.gpu for entity in gpus if entity.key[0] == GPU}
    found = []
    for raw in _ids(engine, LINK):
        kind, link, gpu = raw & 0xFF, raw >> 8 & 0xFFFF, raw >> 24  # as dcgm_link_t packs it
        if kind == GPU and gpu in by_id:  # the others are an NVSwitch's
            found.append(Entity((LINK, raw), by_id[gpu], link))
    return found


def link_states(engine: Engine) -> dict[int, dict[int, bool]]:
    """Return whether each NVLink is up, by DCGM's id of the GPU and link number."""
    try:
        found = engine.discovery.GetNvLinkLinkStatus()
    except engine.bindings.error as error:
        if engine.gone(error):
            raise
        return {}
    return {
        int(gpu.entityId): {
            link: state == UP
            for link, state in enumerate(gpu.linkState)
            if state in (DISABLED, DOWN, UP)
        }
        for gpu in found.gpus[: found.numGpus]
    }


def _ids(engine: Engine, group: int) -> list[int]:
    try:
        return [int(i) for i in engine.discovery.GetEntityGroupEntities(group, True)]
    except engine.bindings.error as error:
        if engine.gone(error):
            raise
        return []  # a DCGM that does not have this kind


def _gpu(engine: Engine, i: int) -> Entity:
    known = engine.discovery.GetGpuAttributes(i).identifiers
    constants = _constants(engine, (GPU, i))
    minor = constants.get(MINOR)
    gpu = GpuIdentity(
        i,
        text(known.uuid),
        text(known.deviceName),
        text(known.pciBusId),
        text(known.driverVersion),
        minor=int(minor) if minor is not None else None,
    )
    return Entity((GPU, i), gpu, constants=constants)


def _instances(engine: Engine, gpus: Mapping[int, Entity]) -> Iterator[Entity]:
    tree = engine.bindings.agent.dcgmGetGpuInstanceHierarchy(engine.id)
    for row in tree.entityList[: tree.count]:
        parent = gpus.get(int(row.parent.entityId))
        if row.entity.entityGroupId != GPU_INSTANCE or parent is None:
            continue
        key = GPU_INSTANCE, int(row.entity.entityId)
        constants = _constants(engine, key)
        gpu = _mig_identity(parent.gpu, str(int(row.info.nvmlInstanceId)), constants)
        yield Entity(key, gpu, constants=constants)


def _mig_identity(
    parent: GpuIdentity, instance: str, constants: Mapping[int, float | str]
) -> GpuIdentity:
    own = str(constants.get(UUID, ""))
    profile = str(constants.get(NAME, "")).removeprefix("MIG ")
    return replace(
        parent,
        # Where DCGM does not give the instance's own: the form that drivers before 470 used.
        uuid=own if own.startswith("MIG-") else f"MIG-{parent.uuid}/{instance}/0",
        mig_profile="" if profile == parent.name else profile,
        mig_instance=instance,
        parent_uuid=parent.uuid,
    )


def _constants(engine: Engine, key: Key) -> dict[int, float | str]:
    try:
        values = engine.latest([key], NEVER_CHANGE, LIVE_DATA)[key]
    except engine.bindings.error as error:
        if engine.gone(error):
            raise
        return {}
    return {i: value for i, value in values.items() if not isinstance(value, Missing)}
