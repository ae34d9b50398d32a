"""Numbers as Go writes them, which prometheus_client follows, and fast."""

from collections.abc import Iterable, Sequence

__all__ = ["go_float", "go_floats"]

INFINITE = float("inf")
EXPONENT_FROM = 1e6
"""Go's shortest form writes an exponent from here on; Python's from 1e16."""
EXACT_BELOW = 2.0**53
"""Up to here every whole number is a float, so that its digits are those of an int."""
EXPONENTS = tuple(f"e+{digits - 1:02d}" for digits in range(17))
"""By number of digits."""


def go_floats(
    numbers: Iterable[float], before: Iterable[float], texts_before: Sequence[str]
) -> list[str]:
    """Return ``go_float`` of each number.

    Args:
        numbers: floats.
        before: as many floats whose text is known: most metrics don't change every second.
        texts_before: their texts.
    """
    rows = zip(numbers, before, texts_before, strict=True)
    # A zero is made anew: 0.0 and -0.0 are equal but not written alike. A plain number is
    # written here, since ten thousand calls are a millisecond.
    return [
        text if n == was and n else repr(n) if 0 <= n < EXPONENT_FROM else go_float(n)
        for n, was, text in rows
    ]


def go_float(number: float) -> str:
    """Return a number as prometheus_client's ``floatToGoString`` does.

    >>> go_float(0.5), go_float(85899345920.0), go_float(INFINITE)
    ('0.5', '8.589934592e+10', '+Inf')
    """
    if number < EXPONENT_FROM:
        return repr(number) if number != -INFINITE else "-Inf"
    if number < EXACT_BELOW and number.is_integer():  # most large numbers are bytes
        digits = str(int(number))
        mantissa = digits.rstrip("0")
        if len(mantissa) > 1:
            return f"{mantissa[0]}.{mantissa[1:]}{EXPONENTS[len(digits)]}"
        return f"{mantissa}{EXPONENTS[len(digits)]}"
    if number == INFINITE:
        return "+Inf"
    if number != number:
        return "NaN"
    digits = repr(number)
    dot = digits.find(".")
    if dot <= 6:  # it has an exponent already
        return digits
    mantissa = f"{digits[0]}.{digits[1:dot]}{digits[dot + 1 :]}".rstrip("0.")
    return f"{mantissa}e+{dot - 1:02d}"
