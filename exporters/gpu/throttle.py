"""Why a GPU's clocks are held down: one bit mask, the same in NVML and DCGM (field 112)."""

__all__ = ["THROTTLE_REASONS", "throttle_reasons"]

THROTTLE_REASONS = {
    0x002: "application_clocks",
    0x004: "software_power_cap",
    0x008: "hardware_slowdown",
    0x010: "sync_boost",
    0x020: "software_thermal",
    0x040: "hardware_thermal",
    0x080: "hardware_power_brake",
    0x100: "display_clocks",
    0x200: "board_limit",
    0x400: "reliability",
}
"""Name by bit of ``nvmlClocksEventReasons``; bit 0x1, "GPU idle", holds nothing down."""


def throttle_reasons(mask: int) -> frozenset[str]:
    """Return the reasons that are active; bits that have no name yet are ``other``.

    >>> sorted(throttle_reasons(0x44))
    ['hardware_thermal', 'software_power_cap']
    >>> throttle_reasons(0x1)
    frozenset()
    """
    known = {name for bit, name in THROTTLE_REASONS.items() if mask & bit}
    other = mask & ~sum(THROTTLE_REASONS) & ~0x1
    return frozenset(known | {"other"} if other else known)
