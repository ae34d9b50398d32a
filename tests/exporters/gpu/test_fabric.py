"""RDMA ports from a tree of sysfs: octets, not words; speeds; what is missing or forbidden."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from vramscope.exporters.engine.host import Reading
from vramscope.exporters.exposition.fabric import add_fabric
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.gpu.fabric import FabricReading, FabricSource
from vramscope.exporters.gpu.link_rate import parse_rate
from vramscope.exporters.signals.fabric import FabricPort, fabric_utilization

TREE = Path(__file__).parent / "data" / "fabric_sysfs.txt"


class Clock:
    """Stands still until a test moves it."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """The tree, unpacked; returns its ``class/infiniband``."""
    for line in TREE.read_text().splitlines():
        if line.startswith("#"):
            continue
        name, sign, value = line.split(" ", 2)
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if sign == "->":
            file.symlink_to(value)
        else:
            file.write_text(f"{value}\n")
    return tmp_path / "class" / "infiniband"


def by_name(reading: FabricReading) -> dict[str, FabricPort]:
    return {f"{port.device}/{port.port}": port for port in reading.ports}


def counters(sysfs: Path, device: str, port: int = 1) -> Path:
    return sysfs / device / "ports" / str(port) / "counters"


def test_every_port_is_found(sysfs: Path, clock: Clock) -> None:
    reading = FabricSource(sysfs, clock).read()
    assert list(by_name(reading)) == [
        "mlx4_0/1",
        "mlx4_0/2",
        "mlx5_0/1",
        "mlx5_1/1",
        "mlx5_bond_0/1",
        "rdmap0s31/1",
    ]
    assert reading.readings == (Reading("fabric"),)


def test_data_counters_are_words_of_four_octets(sysfs: Path, clock: Clock) -> None:
    port = by_name(FabricSource(sysfs, clock).read())["mlx5_0/1"]
    assert port.bytes_total == {"tx": 1e12, "rx": 5e11}
    assert port.packets_total == {"tx": 1e9, "rx": 5e8}


def test_octets_of_efa_are_octets(sysfs: Path, clock: Clock) -> None:
    port = by_name(FabricSource(sysfs, clock).read())["rdmap0s31/1"]
    assert port.bytes_total == {"tx": 4000, "rx": 3000}
    assert port.errors_total == {"rx_drops": 5}
    assert (port.node_guid, port.numa_node) == ("", None)


def test_port_says_where_it_is(sysfs: Path, clock: Clock) -> None:
    port = by_name(FabricSource(sysfs, clock).read())["mlx5_0/1"]
    assert (port.node_guid, port.subnet_prefix) == ("b83fd20300123400", "fec00000000000a1")
    assert (port.pci_bus_id, port.numa_node) == ("0000:18:00.0", 0)
    assert (port.link_layer, port.state, port.speed) == ("infiniband", "active", "4X NDR")


def test_port_that_is_down_has_no_capacity(sysfs: Path, clock: Clock) -> None:
    port = by_name(FabricSource(sysfs, clock).read())["mlx5_1/1"]
    assert (port.state, port.speed, port.bytes_per_second_capacity) == ("down", "", None)
    assert port.subnet_prefix == "", "the factory's prefix tells no subnet from another"


def test_counters_without_a_number_are_absent(sysfs: Path, clock: Clock) -> None:
    port = by_name(FabricSource(sysfs, clock).read())["mlx4_0/2"]
    assert (port.bytes_total, port.errors_total, port.xmit_wait_ticks_total) == ({}, {}, None)
    assert port.state == "active"


def test_utilisation_is_rate_over_capacity(sysfs: Path, clock: Clock) -> None:
    source = FabricSource(sysfs, clock)
    first = by_name(source.read())["mlx5_0/1"]
    assert fabric_utilization(first) == {}
    words = counters(sysfs, "mlx5_0") / "port_xmit_data"
    words.write_text(f"{250000000000 + 20_000_000_000}\n")
    clock.now_s += 2
    port = by_name(source.read())["mlx5_0/1"]
    assert port.bytes_per_second == {"tx": 40e9, "rx": 0}
    assert fabric_utilization(port) == {"tx": 0.8, "rx": 0}


def test_wrapped_32_bit_counter_goes_on(sysfs: Path, clock: Clock) -> None:
    source = FabricSource(sysfs, clock)
    before = by_name(source.read())["mlx4_0/1"].bytes_total["tx"]
    (counters(sysfs, "mlx4_0") / "port_xmit_data").write_text("4\n")  # 6 words to the top, 4 on
    clock.now_s += 1
    port = by_name(source.read())["mlx4_0/1"]
    assert port.bytes_total["tx"] == before + 40
    assert port.bytes_per_second["tx"] == 40


def test_counter_that_was_reset_never_falls(sysfs: Path, clock: Clock) -> None:
    source = FabricSource(sysfs, clock)
    source.read()
    (counters(sysfs, "mlx5_0") / "symbol_error").write_text("1\n")
    port = by_name(source.read())["mlx5_0/1"]
    assert port.errors_total["symbol_error"] == 4


def test_host_without_rdma_is_no_failure(tmp_path: Path, clock: Clock) -> None:
    assert FabricSource(tmp_path / "none", clock).read() == FabricReading()
    assert FabricSource(tmp_path, clock).read() == FabricReading()


def test_port_that_cant_be_read_does_not_hide_the_others(sysfs: Path, clock: Clock) -> None:
    state = sysfs / "mlx5_0" / "ports" / "1" / "state"
    state.unlink()
    state.mkdir()  # reading it fails for root too
    reading = FabricSource(sysfs, clock).read()
    assert len(reading.ports) == 5
    assert reading.readings == (Reading("fabric", error=f"{state}: can't be read"),)


def test_counter_that_cant_be_read_is_absent(sysfs: Path, clock: Clock) -> None:
    file = counters(sysfs, "mlx5_0") / "port_xmit_data"
    file.unlink()
    file.mkdir()
    port = by_name(FabricSource(sysfs, clock).read())["mlx5_0/1"]
    assert port.bytes_total == {"rx": 5e11}


def test_root_that_is_no_folder_is_an_error(tmp_path: Path, clock: Clock) -> None:
    file = tmp_path / "file"
    file.touch()
    (reading,) = FabricSource(file, clock).read().readings
    assert reading == Reading("fabric", error=f"{file}: Not a directory")


def test_device_that_left_and_came_back_starts_without_a_rate(sysfs: Path, clock: Clock) -> None:
    source = FabricSource(sysfs, clock)
    source.read()
    aside = sysfs.parent / "aside"
    shutil.move(sysfs / "mlx5_0", aside)
    clock.now_s += 1
    assert "mlx5_0/1" not in by_name(source.read())
    shutil.move(aside, sysfs / "mlx5_0")
    clock.now_s += 1
    assert by_name(source.read())["mlx5_0/1"].bytes_per_second == {}


@pytest.mark.parametrize(
    ("text", "layer", "gigabytes_per_second", "speed"),
    [
        ("400 Gb/sec (4X NDR)", "infiniband", 50.0, "4X NDR"),
        ("200 Gb/sec (4X HDR)", "infiniband", 25.0, "4X HDR"),
        ("100 Gb/sec (4X EDR)", "ethernet", 12.5, "4X EDR"),
        ("40 Gb/sec (4X FDR10)", "infiniband", 5.0, "4X FDR10"),
        ("40 Gb/sec (4X QDR)", "infiniband", 4.0, "4X QDR"),
        ("40 Gb/sec (4X QDR)", "ethernet", 5.0, "4X QDR"),
        ("10 Gb/sec (4X)", "infiniband", 1.0, "4X SDR"),
        ("2.5 Gb/sec (1X SDR)", "infiniband", 0.25, "1X SDR"),
        ("56 Gb/sec (4X FDR)", "infiniband", 6.818182, "4X FDR"),
    ],
)
def test_rates_are_data_rates(
    text: str, layer: str, gigabytes_per_second: float, speed: str
) -> None:
    rate = parse_rate(text, layer)
    assert rate is not None
    assert rate.bytes_per_second / 1e9 == pytest.approx(gigabytes_per_second)
    assert rate.speed == speed


@pytest.mark.parametrize("text", ["", "400", "fast", "400 GB/sec (4X NDR)", "400 Gb/sec (4X"])
def test_what_is_no_rate_is_none(text: str) -> None:
    assert parse_rate(text, "infiniband") is None


def test_page(sysfs: Path, clock: Clock, golden: Callable[[str, str], None]) -> None:
    source = FabricSource(sysfs, clock)
    source.read()
    (counters(sysfs, "mlx5_bond_0") / "port_rcv_data").write_text(f"{30000000 + 1250000000}\n")
    clock.now_s += 1
    families = Families()
    add_fabric(families, source.read().ports, "node-1")
    registry = CollectorRegistry(auto_describe=False)
    registry.register(families)
    golden("fabric.prom", generate_latest(registry).decode())
