"""The fleet at a glance: is it healthy, who is the culprit, where is room left."""

from typing import Any

from vramscope.dashboards import variables
from vramscope.dashboards.grafana import Row, dashboard
from vramscope.dashboards.panels import Query, series, stat, table
from vramscope.dashboards.selectors import CLUSTER, MODEL, RATE, where

__all__ = ["UID", "fleet"]

UID = "vramscope-fleet"
E = where(MODEL)
BY_ENGINE = "by (engine, model)"
WAITING = f"vramscope_engine_requests{where(MODEL, state='waiting')}"
PREEMPTED = f"rate(vramscope_preemptions_total{E}[{RATE}])"


def fleet() -> dict[str, Any]:
    """Return the dashboard."""
    return dashboard(
        UID,
        "vramscope / Fleet",
        "Is the fleet healthy, who is the culprit, where is room left? Each number leads on.",
        [variables.datasource(), variables.cluster(), variables.model()],
        [_health(), _culprit(), _room(), _trust()],
    )


def _health() -> Row:
    hung = f"vramscope_engine_state{where(MODEL, state='hung')} == 1"
    lives = f"vramscope_engine_state{where(MODEL, state='~busy|idle')}"
    running = f"vramscope_engine_requests{where(MODEL, state='running')}"
    exhausted = f"vramscope_kv_exhaustion_seconds{where(MODEL, bound='median')}"
    return "Is it healthy?", [
        stat(
            "Engines that answer",
            "Engines that step or are idle. Fewer than you run: one is hung, gone, or its "
            "exporter is not scraped.",
            "count",
            [Query(f"count(max {BY_ENGINE} ({lives}) == 1)")],
            link="vramscope-engine",
        ),
        stat(
            "Engines that hang",
            "Busy, and without a step for longer than max(5 s, 10 x its p99 step). Look at its "
            "log, then end its process group.",
            "count",
            [Query(f"count({hung}) or vector(0)")],
            threshold="fleet:vramscope_engines_hung:count",
            link="vramscope-engine",
        ),
        stat(
            "Requests that run",
            "Requests in the running batches of all engines.",
            "requests",
            [Query(f"sum({running})")],
        ),
        stat(
            "Requests that wait",
            "Requests in the engines' queues. Growing while KV memory is full: the fleet is too "
            "small, or one model's share of it is.",
            "requests",
            [Query(f"sum({WAITING})")],
        ),
        stat(
            "Preemptions a second",
            "Requests that lose their KV blocks and compute their prompt again. Above a thousandth "
            "a second: admit fewer, or give the engine more KV memory.",
            "per second",
            [Query(f"sum({PREEMPTED})")],
            threshold="engine:vramscope_preemptions:rate5m",
            link="vramscope-engine",
        ),
        stat(
            "Nearest exhaustion",
            "Estimate: the time until the first pool has no block for a new request, at the growth "
            "of the last 10 s. No data: no pool is being filled.",
            "seconds",
            [Query(f"min({exhausted})")],
            threshold="vramscope_kv_exhaustion_seconds",
            link="vramscope-vram",
        ),
    ]


def _culprit() -> Row:
    return "Who is the culprit?", [
        table(
            "Which engine suffers most?",
            "A row for each engine: its queue, preemptions a second, tokens computed again, "
            "fragmentation index, room. Sort by what hurts, then open the engine's dashboard.",
            [
                Query(f"sum {BY_ENGINE} ({WAITING})", "waiting"),
                Query(f"sum {BY_ENGINE} ({PREEMPTED})", "preemptions"),
                Query(f"max {BY_ENGINE} (vramscope_recompute_tax_ratio{E})", "tax"),
                Query(f"max {BY_ENGINE} (vramscope_kv_fragmentation_ratio{E})", "index"),
                Query(f"sum {BY_ENGINE} (vramscope_kv_usable_blocks{E})", "usable"),
                Query(f"min {BY_ENGINE} (vramscope_lora_hit_ratio{E})", "hit"),
            ],
            columns={
                "waiting": ("waiting", "requests"),
                "preemptions": ("preemptions", "per second"),
                "tax": ("recompute tax since start", "ratio"),
                "index": ("fragmentation index", "ratio"),
                "usable": ("usable blocks", "blocks"),
                "hit": ("LoRA hits since start", "ratio"),
            },
            by=("engine", "model"),
            thresholds={
                "preemptions": "engine:vramscope_preemptions:rate5m",
                "tax": "engine:vramscope_recompute_tax:ratio_rate5m",
                "hit": "engine:vramscope_lora_hit:ratio_rate5m",
            },
        )
    ]


def _room() -> Row:
    stranded = " + ".join(f"vramscope_kv_{part}_ratio{E}" for part in ("slack", "held", "reserved"))
    tokens = f"rate(vramscope_generated_tokens_total{E}[{RATE}])"
    return "Where is room, and where is it stranded?", [
        series(
            "How many blocks may new requests take?",
            "Usable KV blocks by model: free, less what the watermark and reservations keep. Near "
            "0 with a queue: the model needs another engine.",
            "blocks",
            [Query(f"sum by (model) (vramscope_kv_usable_blocks{E})", "{{model}}")],
        ),
        series(
            "How much capacity is stranded?",
            "Share of the pools that holds no live token and that no new request can have: slack "
            "of running requests, blocks held by none, reservations. High while others wait: send "
            "the next request elsewhere.",
            "ratio",
            [Query(f"avg by (model) ({stranded})", "{{model}}")],
            most=1,
        ),
        series(
            "What do requests wait for?",
            "Requests in the queues by what keeps them there. kv_blocks: memory; lora_slot: too "
            "many adapters at once; token_budget and batch_full: compute; remote_kv: a transfer.",
            "requests",
            [Query(f"sum by (reason) (vramscope_engine_waiting_requests{E})", "{{reason}}")],
            stacked=True,
        ),
        series(
            "How many tokens are generated?",
            "Tokens a second by model. Falling with a steady queue: look for the culprit above.",
            "tokens per second",
            [Query(f"sum by (model) ({tokens})", "{{model}}")],
        ),
    ]


def _trust() -> Row:
    age = f"vramscope_source_age_seconds{where(CLUSTER)}"
    up = f"vramscope_source_up{where(CLUSTER)}"
    return "Can these numbers be trusted?", [
        series(
            "How old is what is shown?",
            "Age of the last reading by kind of source, the oldest of each. Above 15 s: the "
            "exporter is slow, or the source is gone.",
            "seconds",
            [Query(f"max by (source) ({age})", "{{source}}")],
            threshold="vramscope_source_age_seconds",
            size=(12, 7),
        ),
        table(
            "Which sources can't be read?",
            "Sources that failed at the last refresh; the exporter's log says why. Empty is good.",
            [Query(f"max by (source, instance) ({up}) == 0", "up")],
            columns={"up": ("readable (0 is no)", "count")},
            by=("source", "instance"),
            size=(12, 7),
        ),
    ]
