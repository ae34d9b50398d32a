"""Metrics of where an engine's device memory went."""

from vramscope.exporters.catalog.labels import ENGINE
from vramscope.exporters.catalog.metric import Metric

__all__ = ["VRAM", "VRAM_METRICS"]

VRAM = Metric(
    "vramscope_vram_bytes",
    "gauge",
    "bytes",
    "Device memory of one worker's device by what it is for; with the device's total known, the "
    "parts sum to it, and unexplained is the rest, below zero while memory is set aside and not "
    "taken yet.",
    (*ENGINE, "rank", "part"),
)

VRAM_METRICS: tuple[Metric, ...] = (VRAM,)
