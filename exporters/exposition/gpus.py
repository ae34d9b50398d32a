"""GPUs under the catalog's names."""

from collections.abc import Callable, Mapping

from vramscope.exporters.catalog import gpu as catalog
from vramscope.exporters.catalog.metric import Metric
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.gpu.owner import Owner
from vramscope.exporters.gpu.throttle import THROTTLE_REASONS
from vramscope.exporters.gpu.xid import xid_class
from vramscope.exporters.signals import links as link_signals
from vramscope.exporters.signals.gpu import GpuIdentity, GpuReading, GpuSample

__all__ = ["add_gpus", "gpu_labels", "nobody"]

MOST_PROCESSES = 16
"""Processes a GPU shows one by one: a series each, and ids that are never used again."""


def nobody(_: GpuIdentity) -> Owner:
    """Return that it is not known who uses a GPU."""
    return Owner()


def gpu_labels(gpu: GpuIdentity, hostname: str, owner: Owner) -> tuple[str, ...]:
    """Return the values of ``catalog.gpu.GPU``."""
    return (str(gpu.index), gpu.uuid, hostname, gpu.mig_profile, gpu.mig_instance, *owner)


def add_gpus(
    families: Families,
    reading: GpuReading,
    hostname: str,
    owners: Callable[[GpuIdentity], Owner],
    now_s: float,
) -> None:
    """Add all of one reading.

    Args:
        families: where to.
        reading: after ``GpuFollower.follow``: its counters only go up.
        hostname: of this host.
        owners: who uses a GPU.
        now_s: time on the clock of the samples' ``read_at_s``.
    """
    index_of = {uuid: str(index) for uuid, index in reading.indexes.items()}
    for gpu in reading.errors:
        index, uuid = (gpu, "") if gpu.isdecimal() else (index_of.get(gpu, ""), gpu)
        families.add(catalog.GPU_UNREADABLE, 1, index, uuid, hostname)
    for (uuid, xid), count in sorted(reading.xids.items()):
        where = (index_of.get(uuid, ""), uuid, hostname)
        families.add(catalog.GPU_XIDS, count, *where, str(xid), xid_class(xid))
    for sample in reading.samples:
        who = gpu_labels(sample.gpu, hostname, owners(sample.gpu))
        _add_base(families, sample, who, now_s)
        _add_health(families, sample, who)
        _add_pcie(families, sample, who)
        _add_nvlink(families, sample, who)
        _add_signals(families, sample, who)


def _add_each(
    families: Families, metric: Metric, values: Mapping[str, float], who: tuple[str, ...]
) -> None:
    for key, value in values.items():
        families.add(metric, value, *who, key)


def _add_base(families: Families, sample: GpuSample, who: tuple[str, ...], now_s: float) -> None:
    gpu = sample.gpu
    families.add(catalog.GPU_INFO, 1, *who, gpu.name, gpu.pci_bus_id, gpu.driver_version)
    for family, at_s in {"base": sample.read_at_s, **sample.family_read_at_s}.items():
        families.add(catalog.GPU_AGE, now_s - at_s, *who, family)
    _add_each(families, catalog.GPU_MEMORY, sample.memory_bytes, who)
    largest = sorted(sample.processes, key=lambda process: (-process.used_bytes, process.pid))
    for process in largest[:MOST_PROCESSES]:
        families.add(catalog.GPU_PROCESS_MEMORY, process.used_bytes, *who, str(process.pid))
    _add_each(families, catalog.GPU_UTILIZATION, sample.utilization_ratio, who)
    _add_each(families, catalog.GPU_ACTIVITY, sample.activity_ratio, who)
    _add_each(families, catalog.GPU_CLOCK, sample.clock_hz, who)
    _add_each(families, catalog.GPU_TEMPERATURE, sample.temperature_celsius, who)
    families.add(catalog.GPU_POWER, sample.power_watts, *who)
    families.add(catalog.GPU_ENERGY, sample.energy_joules_total, *who)
    if sample.throttle_reasons is not None:
        for reason in sorted({*THROTTLE_REASONS.values(), *sample.throttle_reasons}):
            active = float(reason in sample.throttle_reasons)
            families.add(catalog.GPU_THROTTLE, active, *who, reason)
    _add_each(families, catalog.GPU_THROTTLE_SECONDS, sample.throttle_seconds_total, who)


def _add_health(families: Families, sample: GpuSample, who: tuple[str, ...]) -> None:
    for (kind, counter), count in sample.ecc_errors_total.items():
        families.add(catalog.GPU_ECC, count, *who, kind, counter)
    _add_each(families, catalog.GPU_REMAPPED_ROWS, sample.remapped_rows_total, who)
    families.add(catalog.GPU_ROW_REMAP_FAILED, _flag(sample.row_remap_failed), *who)
    families.add(catalog.GPU_ROW_REMAP_PENDING, _flag(sample.row_remap_pending), *who)


def _add_pcie(families: Families, sample: GpuSample, who: tuple[str, ...]) -> None:
    pcie = sample.pcie
    _add_each(families, catalog.GPU_PCIE_BYTES, pcie.bytes_total, who)
    _add_each(families, catalog.GPU_PCIE_RATE, pcie.bytes_per_second, who)
    families.add(catalog.GPU_PCIE_GENERATION, pcie.generation, *who, "now")
    families.add(catalog.GPU_PCIE_GENERATION, pcie.max_generation, *who, "most")
    families.add(catalog.GPU_PCIE_WIDTH, pcie.width, *who, "now")
    families.add(catalog.GPU_PCIE_WIDTH, pcie.max_width, *who, "most")
    families.add(catalog.GPU_PCIE_REPLAYS, pcie.replays_total, *who)


def _add_nvlink(families: Families, sample: GpuSample, who: tuple[str, ...]) -> None:
    _add_each(families, catalog.GPU_NVLINK_BYTES, sample.nvlink_bytes_total, who)
    _add_each(families, catalog.GPU_NVLINK_RATE, sample.nvlink_bytes_per_second, who)
    _add_each(families, catalog.GPU_NVLINK_ERRORS, sample.nvlink_errors_total, who)
    _add_each(families, catalog.GPU_C2C_RATE, sample.c2c_bytes_per_second, who)
    states = [link.active for link in sample.links if link.active is not None]
    if states:
        families.add(catalog.GPU_NVLINKS, states.count(True), *who, "up")
        families.add(catalog.GPU_NVLINKS, states.count(False), *who, "down")
    for link in sample.links:
        number = str(link.link)
        families.add(catalog.GPU_NVLINK_UP, _flag(link.active), *who, number, link.peer)
        _add_each(families, catalog.GPU_NVLINK_LINK_BYTES, link.bytes_total, (*who, number))
        _add_each(families, catalog.GPU_NVLINK_LINK_ERRORS, link.errors_total, (*who, number))


def _add_signals(families: Families, sample: GpuSample, who: tuple[str, ...]) -> None:
    capacities = {
        "pcie": link_signals.pcie_capacity(sample.pcie),
        "nvlink": link_signals.nvlink_capacity(sample.links),
    }
    utilizations = {
        "pcie": link_signals.pcie_utilization(sample.pcie),
        "nvlink": link_signals.nvlink_utilization(sample),
    }
    degraded = {
        "pcie": link_signals.pcie_degraded(sample),
        "nvlink": link_signals.nvlink_degraded(sample.links),
    }
    for link in ("pcie", "nvlink"):
        families.add(catalog.GPU_LINK_CAPACITY, capacities[link], *who, link)
        _add_each(families, catalog.GPU_LINK_UTILIZATION, utilizations[link], (*who, link))
        families.add(catalog.GPU_LINK_DEGRADED, _flag(degraded[link]), *who, link)
    if not sample.gpu.mig_profile:  # the links are the whole GPU's: no verdict for a part of it
        verdict = link_signals.bound(sample)
        for by in link_signals.BOUNDS:
            families.add(catalog.GPU_BOUND, float(by == verdict), *who, by)


def _flag(value: bool | None) -> float | None:
    return None if value is None else float(value)
