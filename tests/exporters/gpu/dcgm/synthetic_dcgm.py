"""A synthetic DCGM: the part of pydcgm's API that the source uses, over values a test sets.

The names, signatures, return codes and habits are those of the bindings that ship with DCGM 3.3
to 4.6; the code is this project's own.
"""

from types import SimpleNamespace
from typing import Any

from vramscope.exporters.gpu.dcgm_bindings import Bindings

GPU, GPU_INSTANCE, LINK = 1, 4, 6
UNINITIALIZED, UNKNOWN_FIELD, NOT_WATCHED = -10, -13, -16
NO_PERMISSION, GPU_IS_LOST, CONNECTION_NOT_VALID = -17, -18, -21
PROFILING_NOT_SUPPORTED, LIBRARY_NOT_FOUND = -36, -25
INT64_BLANK, FP64_BLANK = 0x7FFFFFFFFFFFFFF0, 2.0**47
MIB = 1 << 20

BASIC_PROFILING = (1001, 1002, 1003, 1004, 1005, 1009, 1010, 1011, 1012)
HOPPER_PROFILING = (*BASIC_PROFILING, *range(1040, 1080))
ORIGINALS = (
    *(1, 2, 50, 51, 53, 54, 55, 80, 82, 85, 100, 101, 112, 140, 150, 155, 156),
    *(202, 203, 204, 206, 207, 230, 235, 236, 237, 238, 240, 241, 242, 243, 244, 245),
    *(250, 251, 252, 253, 310, 311, 312, 313, 393, 394, 395, 396),
    *(409, 419, 429, 439, 440, 449, 526, 843, 897, *BASIC_PROFILING, *range(1040, 1076)),
)
"""What DCGM 3.3 knows."""
LATER = (1076, 1078, 1091, 1092, 1201, 1203, *range(1420, 1425))
"""What DCGM 4.5 knows beyond that."""
FIELDS_OF = {
    "3.3.9": ORIGINALS,
    "4.5.3": (*ORIGINALS, *LATER),
    "4.6.0": (*ORIGINALS, *LATER, *range(1525, 1534)),
    "4.7.0": (*ORIGINALS, *LATER, *range(1525, 1534), *range(1603, 1629), 1648),
}

VALUES: dict[int, int | float | str] = {
    1: "570.86.15",
    2: "12.570.86.15",
    51: "Tesla",
    53: "1650123",
    85: "96.00.74.00.01",
    100: 1980,
    101: 2619,
    112: 0x4,
    140: 61,
    150: 55,
    155: 412.5,
    156: 987_654_321,
    202: 3,
    203: 97,
    204: 54,
    206: 0,
    207: 12,
    235: 5,
    236: 16,
    237: 4,
    238: 16,
    240: 2_500_000_000,
    241: 0,
    242: 0,
    243: 0,
    244: 0,
    245: 0,
    250: 81559,
    251: 20000,
    252: 61000,
    253: 559,
    310: 7,
    311: 0,
    312: 9,
    313: 1,
    393: 0,
    394: 2,
    395: 0,
    396: 0,
    409: 1,
    419: 2,
    429: 3,
    439: 0,
    440: 100,
    449: 180_000,
    526: 0,
    843: 90_000,
    897: 91_000,
    1001: 0.98,
    1002: 0.91,
    1003: 0.33,
    1004: 0.42,
    1005: 0.71,
    1009: 1_500_000_000,
    1010: 2_500_000_000,
    1011: 90_000_000_000,
    1012: 91_000_000_000,
    1076: 4000,
    1078: 5000,
    1091: 10**15,
    1092: 2 * 10**15,
    1201: 7 * 10**15,
    1203: 8 * 10**15,
    1420: 2_500_000_000,
    1421: 0,
    1422: 0,
    1423: 250_000_000,
    1424: 0,
    1525: 1,
    1526: 2,
    1527: 3,
    1528: 4,
    1532: 5_000_000_000,
    1533: 5_100_000_000,
    1603: 1_980_000_000,
    1604: 2_619_000_000,
    1611: 987_654,
    1613: 0.97,
    1614: 0.54,
    1615: 0.0,
    1616: 0.12,
    1617: 2.5,
    1618: 0.0,
    1619: 0.0,
    1620: 0.0,
    1621: 0.0,
    1622: 0.0,
    1625: 81559 * MIB,
    1626: 20000 * MIB,
    1627: 61000 * MIB,
    1628: 559 * MIB,
    1648: 184_320_000_000,
    **{field: 5_000_000_000 + field for field in range(1040, 1076)},
}
"""Of a busy GPU, in DCGM's units."""

WORDS = {
    UNINITIALIZED: "Object is in an undefined state",
    UNKNOWN_FIELD: "Unknown field",
    NOT_WATCHED: "Field is not being updated",
    NO_PERMISSION: "Not permissioned",
    GPU_IS_LOST: "GPU is unreachable",
    CONNECTION_NOT_VALID: "The connection to the host engine is not valid any longer",
    PROFILING_NOT_SUPPORTED: "Profiling is not supported for this group of GPUs or GPU",
    LIBRARY_NOT_FOUND: "DCGM library could not be found",
}


class DCGMError(Exception):
    """As ``dcgm_structs.DCGMError``: a return code."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __str__(self) -> str:
        return WORDS.get(self.value, f"error {self.value}")


def check(code: int) -> None:
    if code:
        raise DCGMError(code)


class SyntheticDcgm:
    """One host with GPUs 0 to ``gpus`` - 1 and one host engine."""

    def __init__(self, gpus: int = 1, version: str = "4.6.0") -> None:
        self.version = version
        self.known = set(FIELDS_OF[version])
        self.gpus = list(range(gpus))
        self.instances: dict[int, tuple[int, int, str]] = {}
        """MIG instances, by entity id: GPU, the driver's instance id, profile."""
        self.links: list[int] = []
        self.link_states: dict[int, list[int]] = {}
        self.alive = True
        self.refuse: int = 0
        """A code that connecting fails with."""
        self.values: dict[tuple[int, int, int], int | float | str] = {}
        """Overrides, by entity group, entity and field."""
        self.statuses: dict[tuple[int, int, int], int] = {}
        self.failing: dict[tuple[int, int], int] = {}
        """Entities that fail every call they are part of, and with what code."""
        self.profiling: dict[int, tuple[int, ...] | int] = {}
        """Profiling fields by GPU, or the code that asking for them fails with."""
        self.unwatchable: dict[int, int] = {}
        self.xids: dict[tuple[int, int], list[tuple[int, int]]] = {}
        """(time in microseconds, XID), by entity."""
        self.xid_failure: int = 0
        """A code that reading XIDs fails with."""
        self.watched: dict[tuple[int, int], dict[int, tuple[int, int]]] = {}
        """(period in microseconds, samples kept), by entity and field."""
        self.connections: list[dict[str, Any]] = []
        self.open_groups: set[str] = set()
        self.collections: list[Collection] = []
        """What the source reads XIDs into."""

    def bindings(self) -> Bindings:
        pydcgm = SimpleNamespace(
            DcgmHandle=lambda **kwargs: Handle(self, **kwargs),
            DcgmGroup=lambda handle, groupName: Group(self, handle, groupName),  # noqa: N803
            DcgmFieldGroup=lambda handle, name, ids: FieldGroup(self, handle, name, ids),
        )
        structs = SimpleNamespace(
            DCGMError=DCGMError,
            c_dcgmGroupEntityPair_t=lambda group, i: SimpleNamespace(
                entityGroupId=group, entityId=i
            ),
        )
        return Bindings(pydcgm, Agent(self), structs)

    def restart(self) -> None:
        """What a restarted host engine has forgotten."""
        self.alive = True
        self.watched.clear()
        self.open_groups.clear()
        self.xids.clear()

    def lose(self, gpu: int) -> None:
        self.statuses |= {(GPU, gpu, field): GPU_IS_LOST for field in self.known}

    def find(self, gpu: int) -> None:
        self.statuses = {key: v for key, v in self.statuses.items() if key[:2] != (GPU, gpu)}

    def check(self, handle: "Handle") -> None:
        check(0 if self.alive and handle.connected else CONNECTION_NOT_VALID)

    def value(self, group: int, i: int, field: int, live: bool) -> tuple[int, int | float | str]:
        if (group, i, field) in self.statuses:
            return self.statuses[group, i, field], 0
        if field not in self.known:
            return UNKNOWN_FIELD, 0
        if not live and field not in self.watched.get((group, i), {}):
            return NOT_WATCHED, 0
        if (group, i, field) in self.values:
            return 0, self.values[group, i, field]
        own: dict[int, int | float | str] = {50: "NVIDIA H100 80GB HBM3", 55: i, 54: uuid(i)}
        if group == GPU_INSTANCE:
            own = {50: self.instances[i][2], 54: uuid(self.instances[i][0])}
        return 0, own.get(field, VALUES.get(field, 0))


def uuid(gpu: int) -> str:
    return f"GPU-{gpu:08x}-0000-0000-0000-000000000000"


class Handle:
    def __init__(self, dcgm: SyntheticDcgm, **where: str) -> None:
        check(dcgm.refuse or (0 if dcgm.alive else CONNECTION_NOT_VALID))
        self._dcgm = dcgm
        self.connected = True
        self.handle = self
        dcgm.connections.append(where)

    def GetSystem(self) -> Any:  # noqa: N802
        return SimpleNamespace(discovery=Discovery(self._dcgm, self), UpdateAllFields=self._update)

    def _update(self, wait: bool) -> None:
        assert wait, "the first values are there only once waited for"
        self._dcgm.check(self)

    def Shutdown(self) -> None:  # noqa: N802
        self._dcgm.check(self)
        self.connected = False


class Discovery:
    def __init__(self, dcgm: SyntheticDcgm, handle: Handle) -> None:
        self._dcgm = dcgm
        self._handle = handle

    def GetAllSupportedGpuIds(self) -> list[int]:  # noqa: N802
        self._dcgm.check(self._handle)
        return list(self._dcgm.gpus)

    def GetEntityGroupEntities(self, group: int, supported: bool) -> list[int]:  # noqa: N802
        self._dcgm.check(self._handle)
        assert supported
        return list(self._dcgm.instances if group == GPU_INSTANCE else self._dcgm.links)

    def GetGpuAttributes(self, gpu: int) -> Any:  # noqa: N802
        self._dcgm.check(self._handle)
        check(self._dcgm.failing.get((GPU, gpu), 0))
        return SimpleNamespace(
            identifiers=SimpleNamespace(
                uuid=uuid(gpu).encode(),
                deviceName=b"NVIDIA H100 80GB HBM3",
                pciBusId=f"00000000:{0x1B + gpu:02X}:00.0".encode(),
                driverVersion=b"570.86.15",
            )
        )

    def GetNvLinkLinkStatus(self) -> Any:  # noqa: N802
        self._dcgm.check(self._handle)
        gpus = [
            SimpleNamespace(entityId=gpu, linkState=states)
            for gpu, states in self._dcgm.link_states.items()
        ]
        return SimpleNamespace(numGpus=len(gpus), gpus=gpus)


class Named:
    def __init__(self, dcgm: SyntheticDcgm, handle: Handle, name: str) -> None:
        dcgm.check(handle)
        assert name not in dcgm.open_groups, f"{name}: names of groups are unique"
        dcgm.open_groups.add(name)
        self._dcgm = dcgm
        self._handle = handle
        self._name = name

    def Delete(self) -> None:  # noqa: N802
        self._dcgm.check(self._handle)
        self._dcgm.open_groups.remove(self._name)


class FieldGroup(Named):
    def __init__(self, dcgm: SyntheticDcgm, handle: Handle, name: str, ids: list[int]) -> None:
        assert 0 < len(ids) <= 128
        assert len(set(ids)) == len(ids)
        check(0 if dcgm.known.issuperset(ids) else UNKNOWN_FIELD)
        super().__init__(dcgm, handle, name)
        self.ids = ids


class Group(Named):
    def __init__(self, dcgm: SyntheticDcgm, handle: Handle, name: str) -> None:
        super().__init__(dcgm, handle, name)
        self.entities: list[tuple[int, int]] = []
        self.samples = self

    def AddEntity(self, group: int, i: int) -> None:  # noqa: N802
        self._dcgm.check(self._handle)
        self.entities.append((group, i))

    def WatchFields(self, fields: FieldGroup, us: int, age_s: float, samples: int) -> None:  # noqa: N802
        self._dcgm.check(self._handle)
        assert age_s > 0
        assert samples > 0, "0 keeps all samples for ever"
        for i in fields.ids:
            check(self._dcgm.unwatchable.get(i, 0))
        for entity in self.entities:
            watched = self._dcgm.watched.setdefault(entity, {})
            watched |= dict.fromkeys(fields.ids, (us, samples))

    def GetAllSinceLastCall_v2(self, held: "Collection | None", fields: FieldGroup) -> "Collection":  # noqa: N802
        self._dcgm.check(self._handle)
        check(self._dcgm.xid_failure)
        if held is None:
            held = Collection()
            self._dcgm.collections.append(held)
            self._latest(held, fields)
            return held
        for entity in self.entities:
            for at_us, xid in self._dcgm.xids.get(entity, []):
                if at_us >= held.next_us:
                    held.insert(entity, fields.ids[0], at_us, xid)
        newest = [at for events in self._dcgm.xids.values() for at, _ in events]
        held.next_us = max([held.next_us - 1, *newest]) + 1
        if not held.values:
            self._latest(held, fields)
        return held

    def _latest(self, held: "Collection", fields: FieldGroup) -> None:
        for entity in self.entities:
            events = self._dcgm.xids.get(entity) or [(0, INT64_BLANK)]
            held.insert(entity, fields.ids[0], *events[-1])


class Collection:
    """Grows until it is emptied."""

    def __init__(self) -> None:
        self.values: dict[int, dict[int, dict[int, list[Any]]]] = {}
        self.next_us = 0

    def insert(self, entity: tuple[int, int], field: int, at_us: int, value: int) -> None:
        group, i = entity
        blank = value >= INT64_BLANK
        series = self.values.setdefault(group, {}).setdefault(i, {}).setdefault(field, [])
        series.append(SimpleNamespace(ts=at_us, value=value, isBlank=blank))

    def EmptyValues(self) -> None:  # noqa: N802
        self.values = {}


class Agent:
    def __init__(self, dcgm: SyntheticDcgm) -> None:
        self._dcgm = dcgm

    def dcgmHostengineVersionInfo(self, handle: Handle) -> Any:  # noqa: N802
        self._dcgm.check(handle)
        return SimpleNamespace(rawBuildInfoString=f"version:{self._dcgm.version};arch:x86_64")

    def dcgmEntitiesGetLatestValues(  # noqa: N802
        self, handle: Handle, entities: list[Any], ids: list[int], flags: int
    ) -> list[Any]:
        self._dcgm.check(handle)
        assert len(ids) <= 128
        for entity in entities:
            check(self._dcgm.failing.get((entity.entityGroupId, entity.entityId), 0))
        return [self._read(entity, i, live=bool(flags & 1)) for entity in entities for i in ids]

    def _read(self, entity: Any, field: int, *, live: bool) -> Any:
        status, value = self._dcgm.value(entity.entityGroupId, entity.entityId, field, live)
        kind = {int: "i", float: "d", str: "s"}[type(value)]
        return SimpleNamespace(
            entityGroupId=entity.entityGroupId,
            entityId=entity.entityId,
            fieldId=field,
            fieldType=ord(kind),
            status=status,
            ts=1,
            value=SimpleNamespace(i64=value, dbl=value, str=str(value).encode()),
        )

    def dcgmProfGetSupportedMetricGroups(self, handle: Handle, gpu: int) -> Any:  # noqa: N802
        self._dcgm.check(handle)
        fields = self._dcgm.profiling.get(gpu, HOPPER_PROFILING)
        if isinstance(fields, int):
            raise DCGMError(fields)
        padded = [*fields, *[0] * 8]  # a fixed array, of which a count is valid
        group = SimpleNamespace(numFieldIds=len(fields), fieldIds=padded)
        return SimpleNamespace(numMetricGroups=1, metricGroups=[group, None])

    def dcgmGetGpuInstanceHierarchy(self, handle: Handle) -> Any:  # noqa: N802
        self._dcgm.check(handle)
        rows = [
            SimpleNamespace(
                entity=SimpleNamespace(entityGroupId=GPU_INSTANCE, entityId=i),
                parent=SimpleNamespace(entityGroupId=GPU, entityId=gpu),
                info=SimpleNamespace(nvmlInstanceId=instance),
            )
            for i, (gpu, instance, _) in self._dcgm.instances.items()
        ]
        return SimpleNamespace(count=len(rows), entityList=[*rows, None])
