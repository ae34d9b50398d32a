"""Recorded series: what several panels and alerts ask for, computed once by Prometheus.

Named ``level:metric:operations``; the level says by which labels a series still is.
"""

from dataclasses import dataclass

__all__ = ["LEVELS", "RECORDED", "RecordedSeries"]

LEVELS = {
    "fleet": ("cluster",),
    "engine": ("cluster", "engine", "model"),
    "model": ("cluster", "model"),
    "gpu": ("cluster", "hostname", "uuid"),
}
"""Labels of each level. ``cluster`` is Prometheus' own external or target label, often absent."""


@dataclass(frozen=True, slots=True)
class RecordedSeries:
    """One recording rule.

    Attributes:
        name: ``level:metric:operations``.
        expression: PromQL over the catalog's metrics.
        unit: of its values.
        help: what it says, ending in a full stop.
    """

    name: str
    expression: str
    unit: str
    help: str

    def __post_init__(self) -> None:
        level, _, rest = self.name.partition(":")
        if level not in LEVELS or rest.count(":") != 1:
            raise ValueError(f"recorded series {self.name}: want LEVEL:METRIC:OPERATIONS")


def _by(level: str) -> str:
    return f"by ({', '.join(LEVELS[level])})"


def _rate(metric: str, level: str, more: str = "") -> str:
    return f"sum {_by(level)} (rate({metric}{more}[5m]))"


def _ratio(part: str, whole: str, level: str, of_part: str = "") -> str:
    """Return a share of rates; no sample while nothing happens: absent is not zero."""
    return f"{_rate(part, level, of_part)} / ({_rate(whole, level)} > 0)"


def _quantile(share: float, metric: str, level: str) -> str:
    labels = ", ".join(("le", *LEVELS[level]))
    return f"histogram_quantile({share}, sum by ({labels}) (rate({metric}_bucket[5m])))"


RECORDED = (
    RecordedSeries(
        "fleet:vramscope_engines_hung:count",
        f"count {_by('fleet')} (vramscope_engine_state{{state='hung'}} == 1)",
        "count",
        "Engines that are busy and have not stepped for too long.",
    ),
    RecordedSeries(
        "engine:vramscope_preemptions:rate5m",
        _rate("vramscope_preemptions_total", "engine"),
        "per second",
        "Preemptions a second.",
    ),
    RecordedSeries(
        "engine:vramscope_recompute_tax:ratio_rate5m",
        _ratio("vramscope_recomputed_tokens_total", "vramscope_prefill_tokens_total", "engine"),
        "ratio",
        "Of the prefill tokens computed, the share that had been computed before.",
    ),
    RecordedSeries(
        "engine:vramscope_lora_hit:ratio_rate5m",
        _ratio(
            "vramscope_lora_requests_total",
            "vramscope_lora_requests_total",
            "engine",
            '{tier="gpu"}',
        ),
        "ratio",
        "Of the requests with an adapter, the share that found it in GPU memory.",
    ),
    RecordedSeries(
        "engine:vramscope_queue_seconds:p99_rate5m",
        _quantile(0.99, "vramscope_engine_queue_seconds", "engine"),
        "seconds",
        "Time in the engine's queue that 1 request in 100 is over.",
    ),
    RecordedSeries(
        "engine:vramscope_step_seconds:p99_rate5m",
        _quantile(0.99, "vramscope_engine_step_seconds", "engine"),
        "seconds",
        "Time of a step that 1 in 100 is over.",
    ),
    RecordedSeries(
        "model:vramscope_requests_error:ratio_rate5m",
        _ratio(
            "vramscope_requests_total",
            "vramscope_requests_total",
            "model",
            '{outcome=~"engine_error|no_engine"}',
        ),
        "ratio",
        "Of the requests at the front door, the share that failed and not by the client's fault.",
    ),
    RecordedSeries(
        "model:vramscope_time_to_first_token_seconds:p99_rate5m",
        _quantile(0.99, "vramscope_time_to_first_token_seconds", "model"),
        "seconds",
        "Time to the first byte of a streamed answer that 1 request in 100 is over.",
    ),
    RecordedSeries(
        "model:vramscope_kv_usable_blocks:sum",
        f"sum {_by('model')} (vramscope_kv_usable_blocks)",
        "blocks",
        "Blocks that new requests of a model may take now, over its engines.",
    ),
    RecordedSeries(
        "gpu:vramscope_gpu_pcie_replays:increase1m",
        f"sum {_by('gpu')} (increase(vramscope_gpu_pcie_replays_total[1m]))",
        "packets",
        "Packets sent again over PCIe within a minute.",
    ),
    RecordedSeries(
        "gpu:vramscope_gpu_nvlink_errors:increase5m",
        f"sum {_by('gpu')} (increase(vramscope_gpu_nvlink_errors_total[5m]))",
        "errors",
        "NVLink errors within five minutes.",
    ),
    RecordedSeries(
        "gpu:vramscope_gpu_throttled:ratio_rate5m",
        f"max {_by('gpu')} (rate(vramscope_gpu_throttled_seconds_total[5m]))",
        "ratio",
        "Share of the time that a GPU was slowed, for the commonest reason.",
    ),
)
