"""Sizes as people read them."""

__all__ = ["gib", "size"]


def gib(count: float) -> str:
    """Return bytes in GiB.

    >>> gib(80 * 1024**3)
    '80.0 GiB'
    """
    return f"{count / 1024**3:.1f} GiB"


def size(count: float) -> str:
    """Return bytes in the largest unit that leaves a number from 1 on.

    >>> size(131072), size(1500), size(0)
    ('128 KiB', '1,500 B', '0 B')
    """
    for unit, bytes_of_it in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if abs(count) >= bytes_of_it:
            number = f"{count / bytes_of_it:,.2f}".rstrip("0").rstrip(".")
            if unit != "KiB" or count % 1024 == 0 or abs(count) >= 10 * bytes_of_it:
                return f"{number} {unit}"
    return f"{int(count):,} B"
