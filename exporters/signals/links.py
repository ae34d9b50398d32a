"""How near a GPU's links are to their ceilings, and which resource holds the GPU up. Pure."""

from collections.abc import Iterable, Mapping
from typing import Literal

from vramscope.exporters.signals.gpu import GpuSample, LinkSample, PcieSample

__all__ = [
    "BOUNDS",
    "Bound",
    "bound",
    "nvlink_capacity",
    "nvlink_degraded",
    "nvlink_utilization",
    "pcie_capacity",
    "pcie_degraded",
    "pcie_utilization",
]

Bound = Literal["idle", "tensor", "dram", "pcie", "nvlink", "latency", "unknown"]

BOUNDS: tuple[Bound, ...] = ("idle", "tensor", "dram", "pcie", "nvlink", "latency", "unknown")

BUSY_SM_ACTIVE = 0.2
"""Share of SMs active below which a GPU is idle."""
BOUND_AT = 0.6
"""Utilisation from which a resource is said to bound the GPU."""

PCIE_BYTES_PER_SECOND_PER_LANE = {
    1: 2.5e9 * 8 / 10 / 8,
    2: 5e9 * 8 / 10 / 8,
    3: 8e9 * 128 / 130 / 8,
    4: 16e9 * 128 / 130 / 8,
    5: 32e9 * 128 / 130 / 8,
    6: 64e9 * 242 / 256 / 8,
    7: 128e9 * 242 / 256 / 8,
}
"""By generation, one direction: transfers a second, less the line encoding (8b/10b, then
128b/130b) or, from 6 on, the check and correction bytes of a 256-byte flit (14). PCI Express Base
Specification 6.0, sections 4.2.1 to 4.2.3. Packet headers are part of it, as they are of what the
GPU counts."""


def pcie_capacity(pcie: PcieSample) -> float | None:
    """Return the bytes per second of one direction at the most the link can negotiate.

    The negotiated generation is of no use here: an idle link downshifts.

    Returns:
        None when generation or width is not known.

    >>> pcie_capacity(PcieSample(generation=1, max_generation=2, width=16, max_width=16))
    8000000000.0
    """
    if pcie.max_generation is None or pcie.max_width is None:
        return None
    lane = PCIE_BYTES_PER_SECOND_PER_LANE.get(pcie.max_generation)
    return None if lane is None else (lane * pcie.max_width or None)


def pcie_utilization(pcie: PcieSample) -> dict[str, float]:
    """Return the share of the capacity in use, by direction; empty when not known."""
    return _utilization(pcie.bytes_per_second, pcie_capacity(pcie))


def nvlink_capacity(links: Iterable[LinkSample]) -> float | None:
    """Return the bytes per second of one direction of all links together.

    A link that is down keeps its share, so that losing one shows as a degraded link and not as
    a smaller ceiling. Its speed is then that of the fastest other.

    Returns:
        None without links, or when no link's speed is known.

    >>> up = LinkSample(0, active=True, bytes_per_second_capacity=25e9, peer="switch")
    >>> nvlink_capacity([up, LinkSample(1, active=False, peer="switch")])
    50000000000.0
    """
    usable = _usable(links)
    speeds = [link.bytes_per_second_capacity for link in usable]
    fastest = max((speed for speed in speeds if speed), default=None)
    return None if fastest is None else sum(speed or fastest for speed in speeds)


def nvlink_utilization(sample: GpuSample) -> dict[str, float]:
    """Return the share of the capacity in use, by direction; empty when not known."""
    return _utilization(sample.nvlink_bytes_per_second, nvlink_capacity(sample.links))


def pcie_degraded(sample: GpuSample) -> bool | None:
    """Return whether the PCIe link runs below its best while the GPU works.

    Returns:
        None when not known, which a downshifted link of an idle GPU is.
    """
    pcie = sample.pcie
    if None in (pcie.generation, pcie.max_generation, pcie.width, pcie.max_width):
        return None
    if (pcie.generation, pcie.width) == (pcie.max_generation, pcie.max_width):
        return False
    busy = sample.activity_ratio.get("sm", sample.utilization_ratio.get("gpu"))
    return True if busy is not None and busy >= BUSY_SM_ACTIVE else None


def nvlink_degraded(links: Iterable[LinkSample]) -> bool | None:
    """Return whether a link that should be up is down.

    Returns:
        None without such links, or when a state is not known.
    """
    states = [link.active for link in _usable(links)]
    if False in states:
        return True
    return None if not states or None in states else False


def bound(sample: GpuSample) -> Bound:
    """Return what holds the GPU up.

    ``idle`` when under 0.2 of the SMs are active; else the most used of tensor pipes, memory
    bandwidth, PCIe and NVLink (the busier direction) if it is used by 0.6 or more; else
    ``latency``: none of them is the limit. ``unknown`` when an input is missing; a GPU without
    NVLink has no NVLink input to miss.
    """
    sm = sample.activity_ratio.get("sm")
    if sm is None:
        return "unknown"
    if sm < BUSY_SM_ACTIVE:
        return "idle"
    used: dict[Bound, float | None] = {
        "tensor": sample.activity_ratio.get("tensor"),
        "dram": sample.activity_ratio.get("dram"),
        "pcie": max(pcie_utilization(sample.pcie).values(), default=None),
    }
    if _usable(sample.links) or sample.nvlink_bytes_per_second:
        used["nvlink"] = max(nvlink_utilization(sample).values(), default=None)
    known = {name: share for name, share in used.items() if share is not None}
    if len(known) < len(used):
        return "unknown"
    most = max(known, key=lambda name: known[name])
    return most if known[most] >= BOUND_AT else "latency"


def _utilization(rates: Mapping[str, float], capacity: float | None) -> dict[str, float]:
    return {} if not capacity else {way: rate / capacity for way, rate in rates.items()}


def _usable(links: Iterable[LinkSample]) -> list[LinkSample]:
    """Return the links that are connected to something: up, or known to have had a peer.

    A board with a switch has all its links wired to it, so there a link without a known peer
    counts too.
    """
    every = list(links)
    if any(link.peer == "switch" for link in every):
        return every
    return [link for link in every if link.active or link.peer]
