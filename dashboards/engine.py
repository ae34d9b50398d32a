"""One time axis: an engine's symptoms over the causes that its scheduler and its GPUs show."""

from typing import Any

from vramscope.dashboards import variables
from vramscope.dashboards.grafana import Row, dashboard
from vramscope.dashboards.panels import Query, heatmap, series, states
from vramscope.dashboards.selectors import ENGINE, GPU, MODEL, RATE, where

__all__ = ["UID", "engine"]

UID = "vramscope-engine"
E = where(ENGINE)
G = where(GPU)
WIDE = (24, 7)
STATES = {"1": ("idle", "blue"), "2": ("busy", "green"), "3": ("hung", "red")}
BOUND = {
    "tensor": ("tensor cores", "green"),
    "dram": ("its own memory", "blue"),
    "pcie": ("movement: PCIe", "orange"),
    "nvlink": ("movement: NVLink", "yellow"),
    "latency": ("latency", "purple"),
    "idle": ("idle", "text"),
    "unknown": ("unknown", "text"),
}
"""By ``vramscope_gpu_bound``'s label: words and colour."""


def engine() -> dict[str, Any]:
    """Return the dashboard."""
    return dashboard(
        UID,
        "vramscope / Engine",
        "Why did latency move? Symptoms first, then the scheduler, then the GPU, on one time axis.",
        [
            variables.datasource(),
            variables.cluster(),
            variables.model(),
            variables.engine(),
            variables.hostname(),
            variables.uuid(),
        ],
        [_symptoms(), _scheduler(), _preemption(), _hardware()],
    )


def _symptoms() -> Row:
    idle, busy, hung = (
        f"max by (engine) (vramscope_engine_state{where(ENGINE, state=one)})"
        for one in ("idle", "busy", "hung")
    )
    ttft = f"vramscope_time_to_first_token_seconds_bucket{where(MODEL)}"
    return "What do requests see?", [
        states(
            "What was each engine doing?",
            "idle: no work. busy: it steps. hung: busy, and without a step for longer than "
            "max(5 s, 10 x its p99 step).",
            [Query(f"{idle} + 2 * {busy} + 3 * {hung}", "{{engine}}")],
            STATES,
            size=(24, 5),
        ),
        series(
            "How long until the first token?",
            "Time from a request's arrival at the front door to the first byte of its answer, by "
            "model: half of the requests, and 99 of 100, are below. Without the front door: empty.",
            "seconds",
            [
                Query(
                    f"histogram_quantile({share}, sum by (le, model) (rate({ttft}[{RATE}])))",
                    f"p{name} {{{{model}}}}",
                )
                for share, name in ((0.5, 50), (0.99, 99))
            ],
        ),
        series(
            "How long does a step take?",
            "Time of a scheduler step, which is the time between two tokens of a running request: "
            "half of the steps, and 99 of 100, are below.",
            "seconds",
            [
                Query(
                    f"histogram_quantile({share}, sum by (le, engine) "
                    f"(rate(vramscope_engine_step_seconds_bucket{E}[{RATE}])))",
                    f"p{name} {{{{engine}}}}",
                )
                for share, name in ((0.5, 50), (0.99, 99))
            ],
        ),
    ]


def _scheduler() -> Row:
    return "What does the scheduler do?", [
        heatmap(
            "How long do requests queue?",
            "Time from arrival in the engine to the first schedule.",
            "seconds",
            [
                Query(
                    f"sum by (le) (increase(vramscope_engine_queue_seconds_bucket{E}[{RATE}]))",
                    "{{le}}",
                )
            ],
        ),
        series(
            "What do requests wait for?",
            "Requests in the queue by what keeps them there. kv_blocks: memory; lora_slot: too "
            "many adapters at once; token_budget and batch_full: compute; remote_kv: a transfer.",
            "requests",
            [Query(f"sum by (reason) (vramscope_engine_waiting_requests{E})", "{{reason}}")],
            stacked=True,
        ),
        series(
            "How large are the batches?",
            "Requests and tokens of the last step.",
            "count",
            [
                Query(
                    f"sum by (engine) (vramscope_engine_batch_requests{E})", "requests {{engine}}"
                ),
                Query(f"sum by (engine) (vramscope_engine_batch_tokens{E})", "tokens {{engine}}"),
            ],
        ),
        series(
            "What is computed?",
            "Tokens a second: decode makes answers, prefill reads prompts; recomputed prefill was "
            "done before and thrown away by a preemption; cached was found in the prefix cache.",
            "tokens per second",
            [
                Query(f"sum(rate(vramscope_decode_tokens_total{E}[{RATE}]))", "decode"),
                Query(f"sum(rate(vramscope_prefill_tokens_total{E}[{RATE}]))", "prefill"),
                Query(f"sum(rate(vramscope_recomputed_tokens_total{E}[{RATE}]))", "recomputed"),
                Query(f"sum(rate(vramscope_cached_prompt_tokens_total{E}[{RATE}]))", "cached"),
            ],
        ),
    ]


def _preemption() -> Row:
    tax = (
        f"sum by (engine) (rate(vramscope_recomputed_tokens_total{E}[{RATE}])) / "
        f"(sum by (engine) (rate(vramscope_prefill_tokens_total{E}[{RATE}])) > 0)"
    )
    resumption = f"vramscope_preemption_resumption_seconds_bucket{E}"
    return "What does preemption cost?", [
        series(
            "How often are requests preempted?",
            "Preemptions a second by reason. kv_exhausted: a running request wanted a block and "
            "there was none. Admit fewer at once, or give the engine more KV memory.",
            "per second",
            [
                Query(
                    f"sum by (engine, reason) (rate(vramscope_preemptions_total{E}[{RATE}]))",
                    "{{engine}} {{reason}}",
                )
            ],
            threshold="engine:vramscope_preemptions:rate5m",
        ),
        series(
            "What share of prefill is done twice?",
            "Recompute tax: of the prefill tokens computed, those that had been computed before.",
            "ratio",
            [Query(tax, "{{engine}}")],
            threshold="engine:vramscope_recompute_tax:ratio_rate5m",
        ),
        heatmap(
            "How long until a victim runs again?",
            "Time from a request's preemption to its next schedule.",
            "seconds",
            [Query(f"sum by (le) (increase({resumption}[{RATE}]))", "{{le}}")],
        ),
        series(
            "Is one request preempted again and again?",
            "Preemptions of the live request that was preempted most often: a storm if it grows.",
            "count",
            [Query(f"max by (engine) (vramscope_preemption_most_repeated{E})", "{{engine}}")],
        ),
    ]


def _hardware() -> Row:
    activity = "vramscope_gpu_activity_ratio"
    link = "vramscope_gpu_link_utilization_ratio"
    bound = " + ".join(
        f"{number} * max by (hostname, uuid) (vramscope_gpu_bound{where(GPU, by=by)})"
        for number, by in enumerate(BOUND, 1)
    )
    return "What do its GPUs do meanwhile?", [
        states(
            "What is each GPU bound by?",
            "What held each GPU up at the last refresh. Movement: PCIe or NVLink is the fullest, "
            "as with adapter loads and offloading. Latency: nothing is full, kernels wait.",
            [Query(bound, "{{hostname}} {{uuid}}")],
            {str(number): look for number, look in enumerate(BOUND.values(), 1)},
            size=(24, 6),
        ),
        series(
            "Does it compute, or wait for memory?",
            "Share of the time that SMs, tensor cores and DRAM were active, all GPUs chosen. DRAM "
            "high and tensor low is decode; both low with requests running is waiting.",
            "ratio",
            [Query(f"avg by (unit) ({activity}{G})", "{{unit}}")],
            most=1,
        ),
        series(
            "How busy are its links?",
            "Traffic over capacity, the busiest direction of each kind of link.",
            "ratio",
            [Query(f"max by (link) ({link}{G})", "{{link}}")],
            threshold=link,
            most=1,
        ),
        series(
            "How much power does it draw?",
            "Board power by GPU. At the cap for long: clocks are held down, see beside.",
            "watts",
            [Query(f"max by (hostname, uuid) (vramscope_gpu_power_watts{G})", "{{uuid}}")],
        ),
        series(
            "Is it slowed, and by what?",
            "Share of the time that clocks were held down, by reason.",
            "ratio",
            [
                Query(
                    f"max by (reason) (rate(vramscope_gpu_throttled_seconds_total{G}[{RATE}]))",
                    "{{reason}}",
                )
            ],
            threshold="gpu:vramscope_gpu_throttled:ratio_rate5m",
            most=1,
        ),
    ]
