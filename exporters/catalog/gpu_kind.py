"""What is known of one GPU product, and which source each of its numbers is from."""

from dataclasses import dataclass

__all__ = ["NUMBERS", "GpuKind", "pcie_bytes_per_s"]

# Raw rate of a lane, transfers a second. Of 130 bits on the wire 128 are data; generation 6 has
# another encoding and is left out.
PCIE_TRANSFERS_PER_S = {3: 8e9, 4: 16e9, 5: 32e9}
PCIE_DATA_RATIO = 128 / 130
PCIE_LANES = 16

FP8_SINCE = (8, 9)

# The same source for every kind, whatever its own sheet says.
COMMON_SOURCES = {"usable_bytes": "smi", "nvlink_links": "nvlink", "compute_capability": "cuda"}

NUMBERS = (
    *("memory_bytes", "usable_bytes", "memory_bytes_per_s"),
    *("nvlink_bytes_per_s", "nvlink_links", "nvlink_domain"),
    *("pcie_generation", "compute_capability", "bf16_flops_per_s"),
)
"""Attributes of a kind that have a source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuKind:
    """One product. None is a number that no source states, or that the product doesn't have.

    Attributes:
        name: as people type it.
        products: names that the driver reports (NVML, ``nvidia-smi``).
        aliases: further names that people type.
        memory_bytes: as marketed, a GB taken as 10**9 bytes. The vendor means 2**30 and the
            firmware keeps some of it, so that the driver reports a number between the two: without
            ``usable_bytes`` a plan takes this one and never promises too much.
        usable_bytes: total that drivers from 510 on report, with ECC as it is set by default.
        memory_bytes_per_s: bandwidth of that memory.
        nvlink_bytes_per_s: both directions and all links together.
        nvlink_links: links of one GPU: those together over what one link of its generation carries.
        nvlink_domain: GPUs that reach each other by NVLink: by bridges, on one baseboard, in one
            rack. None where it hangs on the system.
        pcie_generation: of its 16 lanes to the host; None on a superchip, whose GPU reaches its
            CPU by NVLink-C2C.
        compute_capability: major and minor.
        bf16_flops_per_s: dense, by tensor cores that add up in FP32: half of what a sheet states
            with sparsity.
        sheet: source of all numbers that have no other one.
        elsewhere: (attribute, source) of numbers that the sheet doesn't state.
    """

    name: str
    products: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    memory_bytes: int
    usable_bytes: int | None = None
    memory_bytes_per_s: float
    nvlink_bytes_per_s: float | None = None
    nvlink_links: int | None = None
    nvlink_domain: int | None = None
    pcie_generation: int | None = None
    compute_capability: tuple[int, int]
    bf16_flops_per_s: float | None = None
    sheet: str
    elsewhere: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Everything that it is called."""
        return (self.name, *self.products, *self.aliases)

    @property
    def pcie_bytes_per_s(self) -> float | None:
        """What its PCIe lanes carry in one direction; None where that is not known."""
        generation = self.pcie_generation
        return None if generation is None else pcie_bytes_per_s(generation)

    @property
    def fp8(self) -> bool:
        """Whether its tensor cores take FP8."""
        return self.compute_capability >= FP8_SINCE

    def source(self, number: str) -> str | None:
        """Return the key of the source of one of ``NUMBERS``; None where the number is None."""
        if getattr(self, number) is None:
            return None
        return {**COMMON_SOURCES, **dict(self.elsewhere)}.get(number, self.sheet)


def pcie_bytes_per_s(generation: int, lanes: int = PCIE_LANES) -> float | None:
    """Return what a PCIe link carries in one direction; None for a generation not known here.

    Transfers a second x lanes x 128/130 / 8, before the headers of packets.

    Source:
        PCI Express Base Specification, 128b/130b encoding.

    >>> round(pcie_bytes_per_s(4) / 1e9, 2)
    31.51
    """
    transfers = PCIE_TRANSFERS_PER_S.get(generation)
    return None if transfers is None else transfers * lanes * PCIE_DATA_RATIO / 8
