"""What DCGM returned, as values or the reason why there is none, and values as samples."""

import math
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from vramscope.exporters.gpu.dcgm_fields import QUANTITIES, THROTTLE_MASK, Quantity
from vramscope.exporters.gpu.throttle import throttle_reasons
from vramscope.exporters.signals.gpu import GpuIdentity, GpuSample, LinkSample, PcieSample

__all__ = ["Missing", "decode", "gpu_sample", "link_sample", "text"]

INT32_BLANK = 0x7FFFFFF0
INT64_BLANK = 0x7FFFFFFFFFFFFFF0
FP64_BLANK = 2.0**47


class Missing(StrEnum):
    """Why a field has no value."""

    NO_DATA = "no data yet"
    NOT_FOUND = "not found"
    NOT_SUPPORTED = "not supported"
    NOT_PERMITTED = "not permitted"
    NOT_WATCHED = "not watched"
    GPU_LOST = "GPU is lost"
    FAILED = "failed"


BLANKS = (Missing.NO_DATA, Missing.NOT_FOUND, Missing.NOT_SUPPORTED, Missing.NOT_PERMITTED)
"""By how far a blank is above the first blank of its type."""
STRING_BLANKS = {
    "<<<NULL>>>": Missing.NO_DATA,
    "<<<NOT_FOUND>>>": Missing.NOT_FOUND,
    "<<<NOT_SUPPORTED>>>": Missing.NOT_SUPPORTED,
    "<<<NOT_PERM>>>": Missing.NOT_PERMITTED,
}
STATUSES = {
    -6: Missing.NOT_SUPPORTED,
    -14: Missing.NO_DATA,
    -15: Missing.NO_DATA,
    -16: Missing.NOT_WATCHED,
    -17: Missing.NOT_PERMITTED,
    -18: Missing.GPU_LOST,
    -19: Missing.GPU_LOST,
    -29: Missing.NOT_PERMITTED,
    -67: Missing.GPU_LOST,
}


def decode(raw: Any) -> float | str | Missing:
    """Return the value of one of DCGM's field value structures, or why it has none.

    The status is asked first, then the blanks of its type: DCGM reports "not supported" in
    either. Types without a number or a text (blobs) count as not supported.
    """
    if raw.status != 0:
        return STATUSES.get(raw.status, Missing.FAILED)
    match chr(raw.fieldType):
        case "d":
            return _number(float(raw.value.dbl))
        case "i" | "t":
            return _integer(int(raw.value.i64))
        case "s":
            value = text(raw.value.str)
            blank = Missing.NO_DATA if value.startswith("<<<") else None
            return STRING_BLANKS.get(value) or blank or value
        case _:
            return Missing.NOT_SUPPORTED


def _number(value: float) -> float | Missing:
    if math.isnan(value):
        return Missing.NO_DATA
    return value if value < FP64_BLANK else _blank(int(min(value, 2 * FP64_BLANK) - FP64_BLANK))


def _integer(value: int) -> int | Missing:
    if value >= INT64_BLANK:
        return _blank(value - INT64_BLANK)
    # A value that was blank as 32 bits is sometimes passed on as it was. Only its four codes
    # are taken for blanks: a counter passes through here on its way up.
    if 0 <= value - INT32_BLANK < len(BLANKS):
        return _blank(value - INT32_BLANK)
    return value


def _blank(code: int) -> Missing:
    return BLANKS[code] if code < len(BLANKS) else Missing.NO_DATA


def text(value: Any) -> str:
    """Return a text of the bindings, which give bytes here and str there."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def gpu_sample(
    gpu: GpuIdentity,
    read_at_s: float,
    values: Mapping[int, float | str],
    links: tuple[LinkSample, ...] = (),
) -> GpuSample:
    """Return the sample of one GPU or MIG instance.

    Args:
        gpu: which.
        read_at_s: moment of the read, monotonic clock.
        values: by field id, in the units of DCGM 4.6.
        links: its NVLinks.
    """
    fills = ((quantity, values[i]) for i, quantity in QUANTITIES.items() if i in values)
    filled = _fill(fills)
    mask = values.get(THROTTLE_MASK)
    if mask is not None:
        filled["throttle_reasons"] = throttle_reasons(int(mask))
    for flag in ("row_remap_failed", "row_remap_pending"):
        if flag in filled:
            filled[flag] = bool(filled[flag])
    pcie = {name.removeprefix("pcie."): filled.pop(name) for name in [*filled] if "." in name}
    for whole in ("generation", "max_generation", "width", "max_width"):
        if whole in pcie:
            pcie[whole] = int(pcie[whole])
    return GpuSample(
        gpu, read_at_s, pcie=PcieSample(**pcie), links=links, dcgm_fields=dict(values), **filled
    )


def link_sample(
    link: int, active: bool | None, values: Iterable[tuple[Quantity, float | str]]
) -> LinkSample:
    """Return the sample of one NVLink.

    Args:
        link: its number.
        active: whether it is up, where known.
        values: what each fills, and its value.
    """
    return LinkSample(link, active=active, **_fill(values))


def _fill(values: Iterable[tuple[Quantity, float | str]]) -> dict[str, Any]:
    filled: dict[str, Any] = {}
    for quantity, value in values:
        if isinstance(value, str):
            continue  # a numeric field that a later DCGM turned into a text
        number = quantity.to_unit(value)
        if quantity.key == "":
            filled.setdefault(quantity.field, number)
        else:
            filled.setdefault(quantity.field, {}).setdefault(quantity.key, number)
    return filled
