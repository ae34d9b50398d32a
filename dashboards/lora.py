"""LoRA: whether requests find their adapter, where adapters are, and what moving them costs."""

from typing import Any

from vramscope.dashboards import variables
from vramscope.dashboards.grafana import Row, dashboard
from vramscope.dashboards.panels import Query, heatmap, series, stat, table
from vramscope.dashboards.selectors import ENGINE, RATE, where

__all__ = ["UID", "lora"]

UID = "vramscope-lora"
E = where(ENGINE)
HIT = "engine:vramscope_lora_hit:ratio_rate5m"


def lora() -> dict[str, Any]:
    """Return the dashboard."""
    return dashboard(
        UID,
        "vramscope / LoRA",
        "Do requests find their adapter, where are adapters, and what does moving them cost?",
        [variables.datasource(), variables.cluster(), variables.model(), variables.engine()],
        [_hits(), _moves(), _residency()],
    )


def _hits() -> Row:
    requests = "vramscope_lora_requests_total"
    warm = f"rate({requests}{where(ENGINE, tier='gpu')}[{RATE}])"
    every = f"rate({requests}{E}[{RATE}])"
    return "Do requests find their adapter?", [
        series(
            "How many find it in GPU memory?",
            "Of the requests with an adapter, the share that found it in GPU memory at first "
            "schedule. Low: too many adapters for the slots, or requests of one spread over all "
            "engines.",
            "ratio",
            [Query(f"sum by (engine) ({warm}) / (sum by (engine) ({every}) > 0)", "{{engine}}")],
            threshold=HIT,
            most=1,
        ),
        series(
            "Where was it?",
            "Requests with an adapter a second, by the tier it was in just before.",
            "per second",
            [Query(f"sum by (tier) ({every})", "{{tier}}")],
            stacked=True,
        ),
        stat(
            "Requests that wait for a slot",
            "Queued requests whose adapter has no slot while others use all max_loras of them. "
            "More slots, or another engine for some adapters.",
            "requests",
            [Query(f"sum(vramscope_lora_slot_wait_requests{E})")],
            size=(6, 5),
        ),
        series(
            "How long do they wait?",
            "Seconds of waiting for a slot that end in each second.",
            "count",
            [
                Query(
                    f"sum by (engine) (rate(vramscope_lora_slot_wait_seconds_total{E}[{RATE}]))",
                    "{{engine}}",
                )
            ],
            size=(18, 5),
        ),
    ]


def _moves() -> Row:
    load = "vramscope_lora_load_seconds"
    return "What does moving adapters cost?", [
        series(
            "How many are loaded, and from where?",
            "Loads into GPU memory a second, by the tier they came from.",
            "per second",
            [Query(f"sum by (tier) (rate(vramscope_lora_loads_total{E}[{RATE}]))", "{{tier}}")],
            stacked=True,
        ),
        series(
            "How much time do loads take from everybody?",
            "Share of the time that an engine spends loading adapters: a load stalls the step, so "
            "all that run there wait.",
            "ratio",
            [Query(f"sum by (engine) (rate({load}_sum{E}[{RATE}]))", "{{engine}}")],
            most=1,
        ),
        heatmap(
            "How long does a load take?",
            "Loads by their time; those from disk are the long ones.",
            "seconds",
            [Query(f"sum by (le) (increase({load}_bucket{E}[{RATE}]))", "{{le}}")],
        ),
        series(
            "Do they push each other out?",
            "Evictions a second by tier. Evictions in step with loads are thrash: the same "
            "adapters come and go.",
            "per second",
            [
                Query(
                    f"sum by (tier) (rate(vramscope_lora_evictions_total{E}[{RATE}]))",
                    "{{tier}}",
                )
            ],
        ),
    ]


def _residency() -> Row:
    by = "by (engine, adapter)"
    requests = f"rate(vramscope_lora_adapter_requests_total{E}[{RATE}])"
    return "Which adapter is where?", [
        table(
            "Where is each adapter, and who uses it?",
            "A row for each adapter and engine, the busiest by name and the rest as other: in GPU "
            "memory, in CPU memory, requests and loads a second, bytes.",
            [
                Query(f"max {by} (vramscope_lora_resident{where(ENGINE, tier='gpu')})", "gpu"),
                Query(f"max {by} (vramscope_lora_resident{where(ENGINE, tier='cpu')})", "cpu"),
                Query(f"sum {by} ({requests})", "requests"),
                Query(f"sum {by} (rate(vramscope_lora_adapter_loads_total{E}[{RATE}]))", "loads"),
                Query(f"max {by} (vramscope_lora_adapter_bytes{E})", "bytes"),
            ],
            columns={
                "gpu": ("in GPU memory", "count"),
                "cpu": ("in CPU memory", "count"),
                "requests": ("requests a second", "per second"),
                "loads": ("loads a second", "per second"),
                "bytes": ("bytes", "bytes"),
            },
            by=("adapter", "engine"),
            size=(16, 10),
        ),
        series(
            "How full are the tiers?",
            "Adapters in a tier over those that fit.",
            "ratio",
            [
                Query(
                    f"sum by (tier) (vramscope_lora_slots_used{E}) / "
                    f"sum by (tier) (vramscope_lora_slots{E})",
                    "{{tier}}",
                )
            ],
            most=1,
            size=(8, 10),
        ),
    ]
