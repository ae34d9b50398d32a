"""The topology: matrix, groups, the command, the metrics."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from vramscope.exporters.errors import SourceUnavailableError
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.exposition.topology import add_topology
from vramscope.exporters.gpu.nvml import NvmlSource
from vramscope.exporters.gpu.nvml_topology import read_topology
from vramscope.exporters.gpu.topology import (
    GpuPlace,
    Topology,
    numa_node,
    render,
    topology_document,
)

Golden = Callable[[str, str], None]


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """GPUs 0 to 3 hang on NUMA node 0, the others on 1."""
    for gpu in range(16):
        folder = tmp_path / f"sys/bus/pci/devices/0000:{0x1B + gpu:02x}:00.0"
        folder.mkdir(parents=True)
        (folder / "numa_node").write_text(f"{gpu // 4}\n")
    return tmp_path / "sys"


def test_gpus_on_a_switch_are_one_nvlink_domain(nvml: Any, sysfs: Path) -> None:
    topology = read_topology(sysfs, nvml.clock)
    assert topology.level(0, 0) == "X"
    assert topology.level(3, 7) == topology.level(7, 3) == "NV18"
    assert topology.groups("nvlink") == (tuple(range(8)),)
    assert topology.groups("pcie_switch") == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert topology.groups("numa") == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert topology.groups("host") == (tuple(range(8)),)
    assert topology.gpus[0].nvlink_bytes_per_second == 18 * 26562e6


def test_gpus_without_nvlink_are_as_near_as_their_pcie_path(nvml: Any, sysfs: Path) -> None:
    nvml.set(nvlinks=0)
    topology = read_topology(sysfs, nvml.clock)
    assert [topology.level(0, other) for other in range(5)] == ["X", "PIX", "NODE", "NODE", "SYS"]
    assert topology.groups("nvlink") == tuple((gpu,) for gpu in range(8))


def test_bridged_gpus_count_the_links_that_join_them(nvml: Any, sysfs: Path) -> None:
    """Six links, round robin over the two others."""
    nvml.set(gpus=3, nvlinks=6, nvlink_switch=0)
    topology = read_topology(sysfs, nvml.clock)
    assert {topology.level(0, 1), topology.level(0, 2), topology.level(1, 2)} == {"NV3"}


def test_link_that_is_down_joins_nothing(nvml: Any, sysfs: Path) -> None:
    nvml.set(gpus=2, link_down=5)
    topology = read_topology(sysfs, nvml.clock)
    assert topology.level(0, 1) == "NV17"
    assert topology.gpus[0].nvlinks == 17


def test_lost_gpu_is_said_and_the_others_keep_their_places(nvml: Any, sysfs: Path) -> None:
    nvml.set(gpus=3, lost=1)
    topology = read_topology(sysfs, nvml.clock)
    assert [gpu.index for gpu in topology.gpus] == [0, 2]
    assert topology.level(0, 2) == "NV18"
    assert topology.level(0, 1) == "?"
    assert "GPU1: GPU is lost" in render(topology)


def test_open_source_reads_on_after_the_topology(nvml: Any, sysfs: Path) -> None:
    source = NvmlSource(clock=nvml.clock)
    source.read()
    read_topology(sysfs, nvml.clock)
    assert len(source.read().samples) == 8


def test_matrix_as_text(nvml: Any, sysfs: Path, golden: Golden) -> None:
    nvml.set(gpus=4, nvlinks=6, nvlink_switch=0)
    golden("topology/bridged.txt", render(read_topology(sysfs, nvml.clock)))


def test_matrix_without_nvlink_or_numa(nvml: Any, tmp_path: Path, golden: Golden) -> None:
    nvml.set(gpus=8, nvlinks=0)
    golden("topology/pcie.txt", render(read_topology(tmp_path, nvml.clock)))


def test_metrics(nvml: Any, sysfs: Path, golden: Golden) -> None:
    nvml.set(gpus=3, nvlinks=0)
    families = Families()
    add_topology(families, read_topology(sysfs, nvml.clock), "node1")
    registry = CollectorRegistry(auto_describe=False)
    registry.register(families)
    golden("gpu_topology.prom", generate_latest(registry).decode())


def test_document_holds_matrix_and_groups() -> None:
    gpus = (GpuPlace(0, "GPU-a", numa_node=0), GpuPlace(1, "GPU-b", numa_node=1))
    document = topology_document(Topology(gpus, {(0, 1): 4}, {(0, 1): "SYS"}))
    assert document["levels"] == [["X", "NV4"], ["NV4", "X"]]
    assert document["pcie_paths"] == [{"gpus": [0, 1], "path": "SYS"}]
    assert document["groups"] == {
        "nvlink": [[0, 1]],
        "pcie_switch": [[0], [1]],
        "numa": [[0], [1]],
        "host": [[0, 1]],
    }
    assert document["gpus"][0]["uuid"] == "GPU-a"


def test_nvlink_domain_reaches_over_a_gpu_between() -> None:
    gpus = tuple(GpuPlace(index, f"GPU-{index}") for index in range(4))
    chain = Topology(gpus, {(0, 2): 2, (2, 3): 2})
    assert chain.groups("nvlink") == ((0, 2, 3), (1,))
    assert Topology(()).groups("host") == ()


@pytest.mark.parametrize(("text", "node"), [("1\n", 1), ("-1\n", None), ("?\n", None)])
def test_numa_node_is_what_sysfs_says(tmp_path: Path, text: str, node: int | None) -> None:
    folder = tmp_path / "bus/pci/devices/0000:b3:00.0"
    folder.mkdir(parents=True)
    (folder / "numa_node").write_text(text)
    assert numa_node("00000000:B3:00.0", tmp_path) == node
    assert numa_node("00000000:B4:00.0", tmp_path) is None


def test_no_driver_no_topology(nvml: Any, sysfs: Path) -> None:
    nvml.set(unloaded=1)
    with pytest.raises(SourceUnavailableError, match="modprobe"):
        read_topology(sysfs, nvml.clock)


def run(*args: str, library: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run vramscope as a program of its own that finds the library as it finds the driver's."""
    variables: Mapping[str, str] = {**os.environ, "LD_LIBRARY_PATH": str(library), **env}
    return subprocess.run(
        [sys.executable, "-m", "vramscope.exporters.cli", *args],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_command_prints_the_matrix(real_named_library: Path, sysfs: Path) -> None:
    done = run("topology", "--sysfs", str(sysfs), library=real_named_library)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].split()[:4] == ["GPU0", "X", "NV18", "NV18"]
    assert "NODE = " in done.stdout


def test_command_prints_json(real_named_library: Path, sysfs: Path) -> None:
    done = run("topology", "--json", "--sysfs", str(sysfs), library=real_named_library)
    document = json.loads(done.stdout)
    assert document["groups"]["numa"] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert document["levels"][0][1] == "NV18"


def test_device_check_holds_on_the_synthetic_library(real_named_library: Path) -> None:
    """So that the time on a real GPU is not spent on mistakes of the script."""
    check = Path(__file__).parents[3] / "device" / "nvml_check.py"
    done = subprocess.run(
        [sys.executable, str(check)],
        env={**os.environ, "LD_LIBRARY_PATH": str(real_named_library)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "8 GPUs, 0 faults" in done.stderr
    assert 'vramscope_gpu_activity_ratio{gpu="7"' in done.stdout


def test_command_without_library_says_so_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_text("no library\n")  # hides the host's own
    done = run("topology", library=tmp_path)
    assert done.returncode == 1
    assert not done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("nvml: NVML Shared Library Not Found")
    assert "install NVIDIA's driver" in line
