"""From when on a number is worth a look, and from when on worth waking somebody: each stated once.

Dashboards colour by these and alerts fire by them. A threshold is of a metric, or of a recorded
series (``recording``), in its unit.
"""

from dataclasses import dataclass
from typing import Literal

__all__ = ["THRESHOLDS", "Threshold"]

Worse = Literal["above", "below"]


@dataclass(frozen=True, slots=True)
class Threshold:
    """Of one number.

    Attributes:
        of: the metric or recorded series.
        unit: of both values, as the metric's.
        worse: on which side of the values things are worse.
        warning: from here on it is worth a look.
        critical: from here on it hurts requests or hardware; None where it never does by itself.
        why: where the values are from.
    """

    of: str
    unit: str
    worse: Worse
    warning: float
    critical: float | None
    why: str

    def __post_init__(self) -> None:
        if self.critical is not None and (self.critical < self.warning) != (self.worse == "below"):
            raise ValueError(f"threshold of {self.of}: critical is on the better side of warning")


THRESHOLDS = (
    Threshold(
        *("fleet:vramscope_engines_hung:count", "count", "above", 1, 1),
        why="a hung engine answers nobody and gives nothing back",
    ),
    Threshold(
        *("vramscope_kv_exhaustion_seconds", "seconds", "below", 60, 10),
        why="below a minute a scrape or two are left to react in, below 10 s none",
    ),
    Threshold(
        *("vramscope_kv_waste_ratio", "ratio", "above", 0.1, None),
        why="paging leaves under 4% empty (Kwon et al., SOSP 2023); short requests and large "
        "blocks leave more, which costs room and no request",
    ),
    Threshold(
        *("vramscope_kv_eviction_exposure_ratio", "ratio", "above", 0.9, None),
        why="nearly each block that is taken loses a cached prefix: hits will fall",
    ),
    Threshold(
        *("engine:vramscope_preemptions:rate5m", "per second", "above", 0.001, 1),
        why="the colours of vLLM's own panel",
    ),
    Threshold(
        *("engine:vramscope_recompute_tax:ratio_rate5m", "ratio", "above", 0.05, 0.2),
        why="a twentieth of all prefill done twice is seen in latency, a fifth in throughput",
    ),
    Threshold(
        *("engine:vramscope_lora_hit:ratio_rate5m", "ratio", "below", 0.9, 0.5),
        why="one request in ten waits for its adapter, and all that run with it; then one in two",
    ),
    Threshold(
        *("model:vramscope_requests_error:ratio_rate5m", "ratio", "above", 0.01, 0.05),
        why="vLLM's example alerts and the Gateway API inference extension's",
    ),
    Threshold(
        *("vramscope_signal_age_seconds", "seconds", "above", 5, 60),
        why="an engine writes each step, and idle ones are fresh: 5 s is when one is called hung",
    ),
    Threshold(
        *("vramscope_source_age_seconds", "seconds", "above", 15, 60),
        why="a refresh is 1 s, a scrape 15 s",
    ),
    Threshold(
        *("vramscope_gpu_link_utilization_ratio", "ratio", "above", 0.8, 0.95),
        why="from about 0.8 on transfers wait for each other",
    ),
    Threshold(
        *("vramscope_fabric_utilization_ratio", "ratio", "above", 0.8, 0.95),
        why="from about 0.8 on transfers wait for each other",
    ),
    Threshold(
        *("gpu:vramscope_gpu_pcie_replays:increase1m", "packets", "above", 8, None),
        why="DCGM's health limit",
    ),
    Threshold(
        *("gpu:vramscope_gpu_nvlink_errors:increase5m", "errors", "above", 1, 30_000),
        why="DCGM's health check names the first; 100 a second is its limit for CRC errors",
    ),
    Threshold(
        *("gpu:vramscope_gpu_throttled:ratio_rate5m", "ratio", "above", 0.05, 0.5),
        why="a twentieth of the time slowed is seen in step times",
    ),
)
