"""What an RDMA port's ``rate`` in sysfs means: from ``400 Gb/sec (4X NDR)`` to bytes a second."""

import re
from typing import NamedTuple

__all__ = ["LinkRate", "parse_rate"]

_RATE = re.compile(r"(\d+(?:\.\d+)?) Gb/sec(?: \((\d+X)(?: (\w+))?\))?")

DATA_SHARE = {"SDR": 8 / 10, "DDR": 8 / 10, "QDR": 8 / 10, "FDR": 64 / 66 * 14.0625 / 14}
"""Data bits over the bits of the kernel's figure, by InfiniBand generation. The first three code 8
bits in 10 and are told by what they signal, as is FDR (14.0625 Gb/s a lane, told as 14; 64 bits in
66). From FDR10 and EDR on the figure is the data rate."""


class LinkRate(NamedTuple):
    """A negotiated link rate, one direction."""

    bytes_per_second: float
    speed: str
    """``4X NDR``; empty where the kernel does not say."""


def parse_rate(text: str, link_layer: str) -> LinkRate | None:
    """Read a port's ``rate``.

    Args:
        text: of the file.
        link_layer: ``infiniband``, ``ethernet``; Ethernet's rates are data rates, whatever
            generation the kernel says they are like.

    Returns:
        None when it is not such a text.

    >>> parse_rate("400 Gb/sec (4X NDR)", "infiniband")
    LinkRate(bytes_per_second=50000000000.0, speed='4X NDR')
    >>> parse_rate("40 Gb/sec (4X QDR)", "infiniband").bytes_per_second
    4000000000.0
    """
    match = _RATE.fullmatch(text.strip())
    if match is None:
        return None
    gigabits, width, generation = match.groups()
    # Older kernels have no name for the first generation, which signals 2.5 Gb/s a lane.
    name = generation or ("SDR" if width and float(gigabits) == 2.5 * int(width[:-1]) else "")
    share = DATA_SHARE.get(name, 1.0) if link_layer == "infiniband" else 1.0
    return LinkRate(float(gigabits) * 1e9 / 8 * share, f"{width or ''} {name}".strip())
