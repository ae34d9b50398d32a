"""What a GPU source saw, as frozen values: made by sources, read by formulas and pages.

A quantity that a source can't give, or gives as a blank, is absent from its mapping or None:
absent is never 0. Counters are cumulative since a moment of the source's choosing and may
wrap or restart; ``exporters.gpu.counters`` makes them only go up.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = [
    "GpuIdentity",
    "GpuProcess",
    "GpuReading",
    "GpuSample",
    "LinkSample",
    "PcieSample",
]


@dataclass(frozen=True, slots=True)
class GpuIdentity:
    """Which GPU, or which MIG instance of one.

    Attributes:
        index: of the GPU on its host.
        uuid: of the GPU, ``GPU-...``; a MIG instance's own is ``MIG-...``.
        name: product name.
        pci_bus_id: ``00000000:1B:00.0``.
        driver_version: of the host's driver.
        mig_profile: ``1g.10gb``; empty for a whole GPU.
        mig_instance: GPU instance id; empty for a whole GPU.
        parent_uuid: of the GPU that a MIG instance is a part of; empty for a whole GPU.
        minor: of the device file ``/dev/nvidia<minor>``; None when not known.
    """

    index: int
    uuid: str
    name: str = ""
    pci_bus_id: str = ""
    driver_version: str = ""
    mig_profile: str = ""
    mig_instance: str = ""
    parent_uuid: str = ""
    minor: int | None = None


@dataclass(frozen=True, slots=True)
class PcieSample:
    """The PCIe link of one GPU; tx is from the GPU to the host.

    Attributes:
        bytes_total: counters by direction (``tx``, ``rx``).
        bytes_per_second: rates by direction, where the source measures rates.
        generation: negotiated now; an idle link downshifts.
        max_generation: highest that GPU and slot can negotiate.
        width: lanes negotiated now.
        max_width: most lanes that GPU and slot can negotiate.
        replays_total: counter of replayed packets.
    """

    bytes_total: Mapping[str, float] = field(default_factory=dict)
    bytes_per_second: Mapping[str, float] = field(default_factory=dict)
    generation: int | None = None
    max_generation: int | None = None
    width: int | None = None
    max_width: int | None = None
    replays_total: float | None = None


@dataclass(frozen=True, slots=True)
class LinkSample:
    """One NVLink of one GPU.

    Attributes:
        link: its number.
        active: whether it is up.
        bytes_per_second_capacity: what it can carry in one direction.
        bytes_total: counters by direction.
        bytes_per_second: rates by direction, where the source measures rates.
        errors_total: counters by kind (``crc_flit``, ``crc_data``, ``replay``, ``recovery``).
        peer: what is at the other end: a PCI bus id, ``switch``, or empty.
    """

    link: int
    active: bool | None = None
    bytes_per_second_capacity: float | None = None
    bytes_total: Mapping[str, float] = field(default_factory=dict)
    bytes_per_second: Mapping[str, float] = field(default_factory=dict)
    errors_total: Mapping[str, float] = field(default_factory=dict)
    peer: str = ""


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """One process's memory on a GPU."""

    pid: int
    used_bytes: float


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One GPU or MIG instance at one moment.

    Attributes:
        gpu: which.
        read_at_s: moment of the read, monotonic clock.
        memory_bytes: by kind: ``total``, ``used``, ``free``, ``reserved``.
        utilization_ratio: share of time something ran, by unit: ``gpu``, ``memory_copy``,
            ``encoder``, ``decoder``.
        activity_ratio: profiling-grade, by unit: ``graphics``, ``sm``, ``sm_occupancy``,
            ``tensor``, ``dram``.
        clock_hz: by clock: ``sm``, ``memory``.
        temperature_celsius: by place: ``gpu``, ``memory``.
        power_watts: board power.
        energy_joules_total: counter.
        throttle_reasons: active now; None when not known.
        throttle_seconds_total: counters by reason.
        ecc_errors_total: counters by (``corrected`` | ``uncorrected``, ``volatile`` |
            ``aggregate``).
        remapped_rows_total: counters by ``correctable`` | ``uncorrectable``.
        row_remap_failed: a remap has failed: the GPU wants replacing.
        row_remap_pending: a remap waits for a reset.
        pcie: its PCIe link.
        nvlink_bytes_total: counters by direction, all links.
        nvlink_bytes_per_second: rates by direction, all links.
        nvlink_errors_total: counters by kind (as ``LinkSample.errors_total``), all links.
        links: its NVLinks, where read one by one.
        c2c_bytes_per_second: chip-to-chip link, by direction.
        processes: memory by process.
        family_read_at_s: moments of the families that are read less often than the rest
            (``health``, ``links``, ``pcie``), same clock as ``read_at_s``.
        dcgm_fields: raw values by DCGM field id, in the units of DCGM 4.6; from DCGM only.
    """

    gpu: GpuIdentity
    read_at_s: float
    memory_bytes: Mapping[str, float] = field(default_factory=dict)
    utilization_ratio: Mapping[str, float] = field(default_factory=dict)
    activity_ratio: Mapping[str, float] = field(default_factory=dict)
    clock_hz: Mapping[str, float] = field(default_factory=dict)
    temperature_celsius: Mapping[str, float] = field(default_factory=dict)
    power_watts: float | None = None
    energy_joules_total: float | None = None
    throttle_reasons: frozenset[str] | None = None
    throttle_seconds_total: Mapping[str, float] = field(default_factory=dict)
    ecc_errors_total: Mapping[tuple[str, str], float] = field(default_factory=dict)
    remapped_rows_total: Mapping[str, float] = field(default_factory=dict)
    row_remap_failed: bool | None = None
    row_remap_pending: bool | None = None
    pcie: PcieSample = field(default_factory=PcieSample)
    nvlink_bytes_total: Mapping[str, float] = field(default_factory=dict)
    nvlink_bytes_per_second: Mapping[str, float] = field(default_factory=dict)
    nvlink_errors_total: Mapping[str, float] = field(default_factory=dict)
    links: tuple[LinkSample, ...] = ()
    c2c_bytes_per_second: Mapping[str, float] = field(default_factory=dict)
    processes: tuple[GpuProcess, ...] = ()
    dcgm_fields: Mapping[int, float | str] = field(default_factory=dict)
    family_read_at_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One read of a source.

    Attributes:
        samples: of the GPUs that could be read.
        errors: why the others could not, by GPU (uuid, or index where that is all there is).
        xids: XID events seen since the source was opened, by (GPU uuid, XID).
        indexes: index by uuid, of GPUs that can't be read too.
    """

    samples: tuple[GpuSample, ...]
    errors: Mapping[str, str] = field(default_factory=dict)
    xids: Mapping[tuple[str, int], int] = field(default_factory=dict)
    indexes: Mapping[str, int] = field(default_factory=dict)
