"""``--compat dcgm``: dcgm-exporter's names, labels and units, from either source."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from vramscope.exporters.exposition.go_float import go_float
from vramscope.exporters.exposition.render import FamilyText
from vramscope.exporters.gpu.compat_csv import Counters, Row, parse_counters
from vramscope.exporters.gpu.compat_default import DEFAULT_COUNTERS
from vramscope.exporters.gpu.dcgm_fields import (
    LINK_RATES,
    NVLINK_MB,
    QUANTITIES,
    SUCCESSORS,
    XID,
)
from vramscope.exporters.gpu.owner import Owner
from vramscope.exporters.signals.gpu import GpuIdentity, GpuReading, GpuSample

__all__ = ["CORRECTIONS", "DcgmCompat", "default_counters", "exposed_kind", "field_value"]

ORIGINALS = {successor.field_id: original for original, successor in SUCCESSORS.items()}
NVLINK_TOTAL = 449
DIGITS = 6
"""Behind the point of what is computed back: 57 % was 0.57, and is not to be 56.99999999999999."""

RATE = "a rate: it goes down"
CORRECTIONS: Mapping[int, str] = {
    **dict.fromkeys(LINK_RATES, RATE),
    1648: RATE,
    **dict.fromkeys((*range(1009, 1013), *range(1040, 1080)), RATE),
    **dict.fromkeys((200, 201, *range(825, 843), *range(879, 897)), RATE),
    392: "pages that wait for a reset: none after it",
}
"""Fields that files call counters and that are gauges, and why."""


def default_counters() -> Counters:
    """Return dcgm-exporter 4.8's default set."""
    return parse_counters(DEFAULT_COUNTERS, "default counters")


class DcgmCompat:
    """Makes the text of dcgm-exporter's families.

    One row of a file is one family. A GPU split by MIG has the rows of its instances in its
    place where they have the field, as dcgm-exporter does, so that sums count nothing twice.

    Args:
        counters: which fields.
        hostname: for the label.
    """

    def __init__(self, counters: Counters, hostname: str) -> None:
        self._rows = [row for row in counters.rows if row.kind != "label"]
        self._label_rows = [row for row in counters.rows if row.kind == "label"]
        self._hostname = hostname

    def texts(
        self, reading: GpuReading, owner_of: Callable[[GpuIdentity], Owner] | None = None
    ) -> Iterator[FamilyText]:
        """Yield the families that have a sample.

        Args:
            reading: of any source.
            owner_of: who uses a GPU, for the labels; None: nobody is known to.
        """
        labelled = [(sample, self._labels(sample, owner_of)) for sample in reading.samples]
        for row in self._rows:
            found = [
                (sample, labels, value)
                for sample, labels in labelled
                if isinstance(value := field_value(sample, row.field_id), int | float)
            ]
            split = {sample.gpu.parent_uuid for sample, _, _ in found}
            lines = [
                f"{row.name}{{{labels}}} {go_float(float(value))}\n"
                for sample, labels, value in found
                if sample.gpu.uuid not in split
            ]
            if lines:
                yield FamilyText(*_heads(row), "".join(lines))

    def _labels(self, sample: GpuSample, owner_of: Callable[[GpuIdentity], Owner] | None) -> str:
        gpu = sample.gpu
        device = gpu.index if gpu.minor is None else gpu.minor
        owner = owner_of(gpu) if owner_of else Owner()
        values = {
            "gpu": str(gpu.index),
            "UUID": gpu.parent_uuid or gpu.uuid,
            "pci_bus_id": gpu.pci_bus_id,
            "device": f"nvidia{device}",
            "modelName": gpu.name,
            "GPU_I_PROFILE": gpu.mig_profile,
            "GPU_I_ID": gpu.mig_instance,
            "hostname": self._hostname,
            **{row.name: _label(field_value(sample, row.field_id)) for row in self._label_rows},
            "container": owner.container,
            "namespace": owner.namespace,
            "pod": owner.pod,
            "hpc_job": owner.hpc_job,
        }
        return ",".join(f'{name}="{_quoted(value)}"' for name, value in values.items() if value)


def exposed_kind(row: Row) -> str:
    """Return a row's type on the page: its own, unless one value of that type can't be right.

    A histogram or summary has many values; a field has one.
    """
    if row.kind in ("histogram", "summary") or row.field_id in CORRECTIONS:
        return "gauge"
    return row.kind


def field_value(sample: GpuSample, field_id: int) -> float | str | None:
    """Return what DCGM has for a field, in its unit, whatever the sample's source.

    From the field where DCGM is the source; else from the sample's own quantities; None where
    neither has it.
    """
    if field_id in sample.dcgm_fields:
        return sample.dcgm_fields[field_id]
    if original := ORIGINALS.get(field_id):
        value = field_value(sample, original)
        successor = SUCCESSORS[original]
        return value * successor.over / successor.times if isinstance(value, int | float) else None
    if field_id == NVLINK_TOTAL:
        rates = sample.nvlink_bytes_per_second
        return sum(rates.values()) / NVLINK_MB if {"tx", "rx"} <= rates.keys() else None
    if field_id in CONSTANTS:
        return CONSTANTS[field_id](sample.gpu)
    quantity = QUANTITIES.get(field_id)
    if quantity is None or field_id == XID:
        return None
    found: Any = sample
    for name in quantity.field.split("."):
        found = getattr(found, name)
    if isinstance(found, Mapping):
        found = found.get(quantity.key)
    return None if found is None else round(quantity.from_unit(float(found)), DIGITS)


CONSTANTS: Mapping[int, Callable[[GpuIdentity], float | str | None]] = {
    1: lambda gpu: gpu.driver_version or None,
    50: lambda gpu: gpu.name or None,
    52: lambda gpu: gpu.index,
    54: lambda gpu: gpu.parent_uuid or gpu.uuid,
    55: lambda gpu: gpu.minor,
    57: lambda gpu: gpu.pci_bus_id or None,
}


def _heads(row: Row) -> tuple[str, str]:
    """Return HELP and TYPE lines, in the text format and in OpenMetrics.

    OpenMetrics wants a counter's sample to end in ``_total``, which these names do not: there
    they are of unknown type.
    """
    kind = exposed_kind(row)
    escaped = row.help.replace("\\", r"\\").replace("\n", r"\n")
    text = f"# HELP {row.name} {escaped}\n# TYPE {row.name} {kind}\n"
    open_kind = "unknown" if kind == "counter" else kind
    openmetrics = f"# HELP {row.name} {_quoted(row.help)}\n# TYPE {row.name} {open_kind}\n"
    return text, openmetrics


def _label(value: float | str | None) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else go_float(float(value))


def _quoted(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
