"""Who a GPU belongs to, when it is nobody's, and how the page says so."""

from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from vramscope.exporters.catalog.gpu import GPU_MEMORY
from vramscope.exporters.engine.host import Reading
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.exposition.gpus import gpu_labels
from vramscope.exporters.exposition.owners import add_engine_gpus, add_gpu_users
from vramscope.exporters.gpu.engines import EngineGpu
from vramscope.exporters.gpu.hpc_jobs import read_hpc_jobs
from vramscope.exporters.gpu.owner import Owner
from vramscope.exporters.gpu.owners import GpuOwners, OwnerSource
from vramscope.exporters.signals.gpu import GpuIdentity


@pytest.fixture
def no_kubelet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    socket = tmp_path / "absent" / "kubelet.sock"
    monkeypatch.setattr("vramscope.exporters.gpu.owners.DEFAULT_SOCKET", socket)


def jobs(folder: Path, **lines: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in lines.items():
        (folder / name.lstrip("_")).write_text(text)
    return folder


def test_jobs_are_read_by_gpu_index(tmp_path: Path) -> None:
    folder = jobs(tmp_path / "jobs", _0="4711\n", _1="4712\n\n 4713 \n4712\n", _2="", _10="9")
    jobs(folder, README="not a GPU\n")
    (folder / "3").mkdir()
    assert read_hpc_jobs(folder) == {0: ("4711",), 1: ("4712", "4713"), 10: ("9",)}


def test_one_job_is_the_label_and_two_are_shared(no_kubelet: None, tmp_path: Path) -> None:
    folder = jobs(tmp_path / "jobs", _0="4711\n", _1="4712\n4713\n")
    owners = OwnerSource(hpc_job_folder=folder).read()
    assert owners.readings == (Reading("hpc-jobs"),)
    assert owners.owner(GpuIdentity(0, "GPU-a")) == Owner(hpc_job="4711")
    assert owners.owner(GpuIdentity(1, "GPU-b")) == Owner(shared="true")
    assert [user.hpc_job for user in owners.users(GpuIdentity(1, "GPU-b"))] == ["4712", "4713"]


def test_job_that_ended_is_gone_at_the_next_read(no_kubelet: None, tmp_path: Path) -> None:
    folder = jobs(tmp_path / "jobs", _0="4711\n")
    source = OwnerSource(hpc_job_folder=folder)
    assert source.read().jobs == {0: ("4711",)}
    (folder / "0").unlink()
    assert source.read().jobs == {}


def test_missing_folder_is_an_error_of_its_source_only(no_kubelet: None, tmp_path: Path) -> None:
    owners = OwnerSource(hpc_job_folder=tmp_path / "none").read()
    (reading,) = owners.readings
    assert reading == Reading("hpc-jobs", error=f"{tmp_path / 'none'}: No such file or directory")
    assert owners.owner(GpuIdentity(0, "GPU-a")) == Owner()


def test_host_with_neither_has_no_source(no_kubelet: None) -> None:
    assert OwnerSource().read() == GpuOwners()


def test_container_and_job_of_one_gpu_are_both_named() -> None:
    owners = GpuOwners(containers={"GPU-a": (Owner("p", "n", "c"),)}, jobs={0: ("4711",)})
    assert owners.owner(GpuIdentity(0, "GPU-a")) == Owner("p", "n", "c", "4711")


def test_page_of_owned_shared_and_free_gpus(golden: Callable[[str, str], None]) -> None:
    gpus = [
        GpuIdentity(0, "GPU-a"),
        GpuIdentity(1, "GPU-b"),
        GpuIdentity(1, "MIG-1", mig_profile="1g.10gb", mig_instance="7"),
        GpuIdentity(2, "GPU-c"),
        GpuIdentity(3, "GPU-d"),
    ]
    owners = GpuOwners(
        containers={
            "GPU-a": (Owner("vllm-0", "serving", "engine"),),
            "MIG-1": (Owner("small-0", "dev", "engine"),),
            "GPU-c": (Owner("x", "dev", "main"), Owner("y", "dev", "main")),
        },
        jobs={3: ("4711", "4712")},
    )
    families = Families()
    for gpu in gpus:
        families.add(GPU_MEMORY, 1024.0, *gpu_labels(gpu, "node-1", owners.owner(gpu)), "used")
    add_gpu_users(families, gpus, owners, "node-1")
    add_engine_gpus(families, [EngineGpu("a", 0, "GPU-a", 0), EngineGpu("b", 1, "MIG-1", None)])
    golden("gpu_owners.prom", page(families))


def page(families: Families) -> str:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(families)
    return generate_latest(registry).decode()
