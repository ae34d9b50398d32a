"""The synthetic libdcgm: it builds, and does what the bindings need of it."""

import ctypes
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "synthetic" / "dcgm.c"
CONNECTION_NOT_VALID, UNKNOWN_FIELD = -21, -13
NEEDED = [
    "Connect_v2",
    "Connect_v3",
    "Disconnect",
    "EntitiesGetLatestValues",
    "ErrorString",
    "FieldGroupCreate",
    "FieldGroupDestroy",
    "GetAllSupportedDevices",
    "GetDeviceAttributes",
    "GetEntityGroupEntities",
    "GetGpuInstanceHierarchy",
    "GetLatestValues_v2",
    "GetNvLinkLinkStatus",
    "GetValuesSince_v2",
    "GroupAddEntity",
    "GroupCreate",
    "GroupDestroy",
    "Init",
    "ProfGetSupportedMetricGroups",
    "Shutdown",
    "StartEmbedded",
    "StopEmbedded",
    "UpdateAllFields",
    "VersionInfo",
    "WatchFields",
]


@pytest.fixture(scope="session", params=[3, 4])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    name = f"libdcgm.so.{request.param}"
    file = tmp_path_factory.mktemp("dcgm") / name
    strict = ["-Wall", "-Wextra", "-Werror", f"-Wl,-soname,{name}"]
    command = ["gcc", "-shared", "-fPIC", "-O1", *strict, str(SOURCE), "-o", str(file)]
    subprocess.run(command, check=True)
    return file


def test_library_has_what_the_bindings_call_and_knows_a_dead_engine_and_an_unknown_field(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = tmp_path / "alive"
    scenario.write_text("gpus=3\n")
    monkeypatch.setenv("SYNTHETIC_DCGM", str(scenario))
    dcgm = ctypes.CDLL(str(library))
    assert [name for name in NEEDED if not hasattr(dcgm, f"dcgm{name}")] == []
    handle, made, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    ids = (ctypes.c_uint * 32)()
    assert dcgm.dcgmInit() == 0
    assert dcgm.dcgmStartEmbedded(1, ctypes.byref(handle)) == 0
    assert dcgm.dcgmGetAllSupportedDevices(handle, ids, ctypes.byref(count)) == 0
    assert ids[: count.value] == [0, 1, 2]
    unknown = (ctypes.c_uint16 * 1)(4242)
    created = dcgm.dcgmFieldGroupCreate(handle, 1, unknown, b"unknown", ctypes.byref(made))
    assert created == UNKNOWN_FIELD
    dead = tmp_path / "dead"
    dead.write_text("dead=1\n")
    monkeypatch.setenv("SYNTHETIC_DCGM", str(dead))
    assert dcgm.dcgmUpdateAllFields(handle, 1) == CONNECTION_NOT_VALID


class Content(ctypes.Union):
    _fields_ = (
        ("real", ctypes.c_double),
        ("integer", ctypes.c_longlong),
        ("blob", ctypes.c_char * 4096),
    )


class Value(ctypes.Structure):
    """One value as DCGM hands it to a callback."""

    _fields_ = (
        ("version", ctypes.c_uint),
        ("field", ctypes.c_ushort),
        ("type", ctypes.c_short),
        ("status", ctypes.c_int),
        ("at_us", ctypes.c_longlong),
        ("content", Content),
    )


TAKE = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_uint,
    ctypes.c_uint,
    ctypes.POINTER(Value),
    ctypes.c_int,
    ctypes.c_void_p,
)
GPU, TEMPERATURE, POWER = 1, 150, 155
NOT_WATCHED = -16
INT64_BLANK, FP64_BLANK = 0x7FFFFFFFFFFFFFF0, 2.0**47
Read = dict[tuple[int, int], tuple[int, float]]


def test_watched_fields_of_a_group_come_by_callback_with_blanks_and_a_lost_gpu(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = tmp_path / "scenario"
    scenario.write_text("gpus=3\nlost=2\n0:150=61\n1:150=blank\n1:155=not_supported\n")
    monkeypatch.setenv("SYNTHETIC_DCGM", str(scenario))
    dcgm = ctypes.CDLL(str(library))
    handle, group, fields = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_size_t()
    ids = (ctypes.c_uint16 * 2)(TEMPERATURE, POWER)
    assert dcgm.dcgmInit() == 0
    assert dcgm.dcgmStartEmbedded(1, ctypes.byref(handle)) == 0
    assert dcgm.dcgmGroupCreate(handle, 1, b"gpus", ctypes.byref(group)) == 0
    assert [dcgm.dcgmGroupAddEntity(handle, group, GPU, gpu) for gpu in range(3)] == [0, 0, 0]
    assert dcgm.dcgmFieldGroupCreate(handle, 2, ids, b"fields", ctypes.byref(fields)) == 0

    def read() -> Read:
        found: Read = {}

        def take(_: int, gpu: int, values: "ctypes._Pointer[Value]", count: int, __: object) -> int:
            for value in values[:count]:
                content = value.content.real if value.type == ord("d") else value.content.integer
                found[gpu, value.field] = (value.status, content)
            return 0

        callback = TAKE(take)
        assert dcgm.dcgmGetLatestValues_v2(handle, group, fields, callback, None) == 0
        return found

    assert {status for status, _ in read().values()} >= {NOT_WATCHED}
    second_us, hour_s = ctypes.c_longlong(1_000_000), ctypes.c_double(3600)
    assert dcgm.dcgmWatchFields(handle, group, fields, second_us, hour_s, 2) == 0
    assert dcgm.dcgmUpdateAllFields(handle, 1) == 0
    found = read()
    assert found[0, TEMPERATURE] == (0, 61)
    assert found[1, TEMPERATURE][1] == INT64_BLANK
    assert found[1, POWER][1] == FP64_BLANK + 2  # not supported
    assert found[2, TEMPERATURE][0] != 0
    assert found[2, POWER][0] != 0
