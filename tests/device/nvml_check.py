"""Checks the NVML source on this host's GPUs and prints the page: python tests/device/nvml_check.py

Takes about three seconds and loads no GPU. Exit code 0 when all that could be checked holds.
"""

import socket
import sys
import time
from collections.abc import Iterator
from itertools import pairwise

from prometheus_client import CollectorRegistry, generate_latest

from vramscope.exporters.errors import SourceUnavailableError
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.exposition.gpus import add_gpus, nobody
from vramscope.exporters.exposition.topology import add_topology
from vramscope.exporters.gpu.follower import GpuFollower
from vramscope.exporters.gpu.nvml import NvmlSource
from vramscope.exporters.gpu.nvml_topology import read_topology
from vramscope.exporters.gpu.topology import render
from vramscope.exporters.signals.gpu import GpuReading, GpuSample
from vramscope.exporters.signals.links import pcie_utilization

READS = 4
PERIOD_S = 0.7
OPTIONAL = (
    "activity_ratio",
    "clock_hz",
    "ecc_errors_total",
    "energy_joules_total",
    "links",
    "nvlink_bytes_total",
    "nvlink_errors_total",
    "processes",
    "remapped_rows_total",
    "throttle_reasons",
    "throttle_seconds_total",
)


def main() -> int:
    """Read a few times, print what was seen and what is wrong with it."""
    try:
        source = NvmlSource()
    except SourceUnavailableError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    follower = GpuFollower()
    readings = []
    for turn in range(READS):
        if turn:
            time.sleep(PERIOD_S)  # GPM and the rates are means over it
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        raw = source.read()
        wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
        sys.stderr.write(f"read {turn}: {wall_s * 1e3:.1f} ms, of it CPU {cpu_s * 1e3:.1f} ms\n")
        readings.append(follower.follow(raw, source.name))
    topology = read_topology()
    families = Families()
    hostname = socket.gethostname()
    add_gpus(families, readings[-1], hostname, nobody, time.monotonic())
    add_topology(families, topology, hostname)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(families)
    sys.stdout.write(generate_latest(registry).decode())
    sys.stderr.write(render(topology))
    source.close()
    for line in absent(readings[-1]):
        sys.stderr.write(f"absent: {line}\n")
    wrong = list(faults(readings))
    for line in wrong:
        sys.stderr.write(f"WRONG: {line}\n")
    sys.stderr.write(f"{len(readings[-1].samples)} GPUs, {len(wrong)} faults\n")
    return 1 if wrong else 0


def absent(reading: GpuReading) -> Iterator[str]:
    """Yield what a GPU does not give; none of it is a fault."""
    for sample in reading.samples:
        missing = [name for name in OPTIONAL if not getattr(sample, name)]
        if not sample.pcie.bytes_total:
            missing.append("pcie.bytes_total")
        yield f"GPU {sample.gpu.index}: {', '.join(missing) or 'nothing'}"


def faults(readings: list[GpuReading]) -> Iterator[str]:
    """Yield what can't be true."""
    last = readings[-1]
    for gpu, error in last.errors.items():
        yield f"{gpu}: {error}"
    if not last.samples:
        yield "no GPU was read"
    for sample in last.samples:
        for fault in sample_faults(sample):
            yield f"GPU {sample.gpu.index} ({sample.gpu.uuid}): {fault}"
    for before, after in pairwise(readings):
        for one, other in zip(before.samples, after.samples, strict=False):
            if one.gpu == other.gpu:
                yield from falls(one, other)


def sample_faults(sample: GpuSample) -> Iterator[str]:
    """Yield what is wrong with one GPU or MIG instance."""
    memory = sample.memory_bytes
    if "reserved" in memory:
        rest = memory["total"] - memory["used"] - memory["free"] - memory["reserved"]
        if abs(rest) > 1 << 20:
            yield f"memory: {rest} bytes unaccounted for in {dict(memory)}"
    shares = dict(sample.utilization_ratio) | dict(sample.activity_ratio)
    yield from (f"{unit}: {share}" for unit, share in shares.items() if not 0 <= share <= 1.05)
    if not sample.gpu.mig_profile:
        yield from board_faults(sample)


def board_faults(sample: GpuSample) -> Iterator[str]:
    """Yield what is wrong with one whole GPU."""
    if not sample.gpu.pci_bus_id or not sample.gpu.name:
        yield f"no name or bus id: {sample.gpu}"
    for place, celsius in sample.temperature_celsius.items():
        if not 0 < celsius < 120:
            yield f"temperature {place}: {celsius}"
    if sample.power_watts is not None and not 0 < sample.power_watts < 3000:
        yield f"power: {sample.power_watts} W"
    for way, share in pcie_utilization(sample.pcie).items():
        if share > 1.05:
            yield f"PCIe {way}: {share} of what the link carries"


def falls(before: GpuSample, after: GpuSample) -> Iterator[str]:
    """Yield the counters that fell from one reading to the next."""
    pairs = {
        "energy": (before.energy_joules_total, after.energy_joules_total),
        "PCIe tx": (before.pcie.bytes_total.get("tx"), after.pcie.bytes_total.get("tx")),
        "NVLink tx": (before.nvlink_bytes_total.get("tx"), after.nvlink_bytes_total.get("tx")),
    }
    for name, (one, other) in pairs.items():
        if one is not None and other is not None and other < one:
            yield f"GPU {after.gpu.index}: {name} fell from {one} to {other}"


if __name__ == "__main__":
    sys.exit(main())
