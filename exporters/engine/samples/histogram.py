"""The sample of a histogram."""

from collections.abc import Mapping

from vramscope.exporters.signals.histogram import HistogramSample

__all__ = ["histogram_sample"]


def histogram_sample(fields: Mapping[str, float], name: str) -> HistogramSample:
    """Build the sample of the histogram whose fields begin with ``name``.

    Its bounds are in the fields' names, so that a reader follows the record and not its own
    constants.

    Raises:
        KeyError, ValueError: the record lacks a field or has a wrong one.
    """
    prefix = f"{name}_le_"
    return HistogramSample(
        counts={
            float(field.removeprefix(prefix)): int(count)
            for field, count in fields.items()
            if field.startswith(prefix)
        },
        total=int(fields[f"{name}_count"]),
        summed=fields[f"{name}_sum"],
    )
