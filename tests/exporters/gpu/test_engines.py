"""Which GPUs an engine runs on: by its own records, else by the GPU's list of processes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vramscope.exporters.engine import lock
from vramscope.exporters.engine.host import HostRecords
from vramscope.exporters.gpu.engines import EngineGpu, engine_gpus, parent_pid
from vramscope.exporters.signals.gpu import GpuIdentity, GpuProcess, GpuSample
from vramscope.exporters.signals.samples import EngineSample


@pytest.fixture
def host(records: Any) -> Iterator[HostRecords]:
    host = HostRecords(records.folder, clock=lambda: 1000.5)
    yield host
    host.close()


def the_engine(host: HostRecords) -> EngineSample:
    (sample,) = (reading.sample for reading in host.read() if reading.sample is not None)
    return sample


def gpu(uuid: str, *pids: int) -> GpuSample:
    processes = tuple(GpuProcess(pid, 1024.0) for pid in pids)
    return GpuSample(GpuIdentity(0, uuid), 1000.0, processes=processes)


def nobodys_child(_: int) -> int | None:
    return None


def test_engine_names_its_gpu(records: Any, host: HostRecords) -> None:
    records.engine(header={"gpu_uuids": ["GPU-a"]})
    assert engine_gpus([the_engine(host)], []) == [EngineGpu("a", 0, "GPU-a", 0)]


def test_every_rank_with_a_record_names_its_own(records: Any, host: HostRecords) -> None:
    records.engine(header={"tensor_parallel": 2, "gpu_uuids": []})
    records.worker(rank=1, header={"gpu_uuids": ["GPU-b"]})
    records.worker(rank=0, header={"gpu_uuids": ["GPU-a"]})
    assert engine_gpus([the_engine(host)], []) == [
        EngineGpu("a", 0, "GPU-a", 0),
        EngineGpu("a", 0, "GPU-b", 1),
    ]


def test_engine_and_worker_in_one_process_are_one_row(records: Any, host: HostRecords) -> None:
    records.engine(header={"gpu_uuids": ["GPU-a"]})
    records.worker(header={"gpu_uuids": ["GPU-a"]})
    assert engine_gpus([the_engine(host)], []) == [EngineGpu("a", 0, "GPU-a", 0)]


def test_uuids_of_an_engines_environment_are_by_rank(records: Any, host: HostRecords) -> None:
    records.engine(header={"tensor_parallel": 2, "gpu_uuids": ["GPU-b", "GPU-a"]})
    assert the_engine(host).gpu_uuids == {0: "GPU-b", 1: "GPU-a"}


def test_record_without_uuids_is_matched_by_its_process(records: Any, host: HostRecords) -> None:
    records.engine()
    gpus = [gpu("GPU-a", 1, os.getpid()), gpu("GPU-b", 1)]
    assert engine_gpus([the_engine(host)], gpus, nobodys_child) == [EngineGpu("a", 0, "GPU-a", 0)]


def test_workers_without_records_are_matched_as_children(records: Any, host: HostRecords) -> None:
    records.engine(header={"tensor_parallel": 2, "dp_rank": 1})
    gpus = [gpu("GPU-a", 71), gpu("GPU-b", 72), gpu("GPU-c", 73)]
    parents = {71: os.getpid(), 72: os.getpid(), 73: 1}
    assert engine_gpus([the_engine(host)], gpus, parents.get) == [
        EngineGpu("a", 1, "GPU-a", None),
        EngineGpu("a", 1, "GPU-b", None),
    ]


def test_ranks_that_are_known_are_not_guessed_again(records: Any, host: HostRecords) -> None:
    records.engine(header={"tensor_parallel": 2})
    records.worker(rank=0, header={"gpu_uuids": ["GPU-a"]})
    gpus = [gpu("GPU-a", os.getpid()), gpu("GPU-b", 72)]
    assert engine_gpus([the_engine(host)], gpus, {72: os.getpid()}.get) == [
        EngineGpu("a", 0, "GPU-a", 0),
        EngineGpu("a", 0, "GPU-b", None),
    ]


def test_process_on_a_mig_instance_is_not_on_its_gpu(records: Any, host: HostRecords) -> None:
    records.engine()
    processes = (GpuProcess(os.getpid(), 1024.0),)
    instance = GpuIdentity(0, "MIG-1", mig_instance="7", parent_uuid="GPU-a")
    gpus = [gpu("GPU-a", os.getpid()), GpuSample(instance, 1000.0, processes=processes)]
    assert engine_gpus([the_engine(host)], gpus, nobodys_child) == [EngineGpu("a", 0, "MIG-1", 0)]


def test_engine_on_a_cpu_has_no_gpu(records: Any, host: HostRecords) -> None:
    records.engine(header={"gpu_uuids": []})
    assert engine_gpus([the_engine(host)], [gpu("GPU-a", 1)], nobodys_child) == []


def test_the_locks_pid_is_the_writers(records: Any, host: HostRecords) -> None:
    records.engine()
    assert [process.pid for process in the_engine(host).processes] == [os.getpid()]


HOLD_A_LOCK = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
fcntl.lockf(fd, fcntl.LOCK_EX)
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("wrapper", [[], ["unshare", "--pid", "--fork"]], ids=["here", "container"])
def test_the_locks_pid_is_told_as_this_namespace_sees_it(
    tmp_path: Path, wrapper: list[str]
) -> None:
    if wrapper and subprocess.run([*wrapper, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to make a pid namespace")
    file = tmp_path / "record"
    file.touch()
    command = [*wrapper, sys.executable, "-c", HOLD_A_LOCK, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        its_own_view = int(child.stdout.readline())
        fd = os.open(file, os.O_RDONLY)
        try:
            seen = lock.holder(fd)
        finally:
            os.close(fd)
        assert seen is not None
        if wrapper:
            assert its_own_view == 1
            assert parent_pid(seen) == child.pid
        else:
            assert seen == its_own_view == child.pid
        child.communicate()


def test_lock_that_nobody_holds_has_no_pid(tmp_path: Path) -> None:
    file = tmp_path / "record"
    file.touch()
    fd = os.open(file, os.O_RDONLY)
    try:
        assert lock.holder(fd) is None
    finally:
        os.close(fd)


def test_parent_is_read_past_any_process_name(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text("7 (VLLM:) 9 (x) S 42 7 7 0 -1\n")
    assert parent_pid(7, tmp_path) == 42
    assert parent_pid(8, tmp_path) is None
    assert parent_pid(os.getpid()) == os.getppid()
