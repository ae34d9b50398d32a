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
