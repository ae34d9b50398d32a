"""The controller: what comes in at the front door, how it ends, and where it is sent."""

from typing import Any

from vramscope.dashboards import variables
from vramscope.dashboards.grafana import Row, dashboard
from vramscope.dashboards.panels import Query, heatmap, series
from vramscope.dashboards.selectors import CLUSTER, ENGINE, MODEL, RATE, where

__all__ = ["UID", "controller"]

UID = "vramscope-controller"
M = where(MODEL)
C = where(CLUSTER)
E = where(ENGINE)


def controller() -> dict[str, Any]:
    """Return the dashboard."""
    return dashboard(
        UID,
        "vramscope / Controller",
        "What comes in at the front door, how does it end, and where is it sent?",
        [variables.datasource(), variables.cluster(), variables.model(), variables.engine()],
        [_requests(), _decisions()],
    )


def _requests() -> Row:
    failed = where(MODEL, outcome="~engine_error|no_engine")
    every = f"sum by (model) (rate(vramscope_requests_total{M}[{RATE}]))"
    ttft = f"vramscope_time_to_first_token_seconds_bucket{M}"
    return "How do requests end?", [
        series(
            "How do requests end?",
            "Requests a second by outcome: completed, client_error, engine_error, cancelled, "
            "no_engine, unknown_model.",
            "per second",
            [Query(f"sum by (outcome) (rate(vramscope_requests_total{M}[{RATE}]))", "{{outcome}}")],
            stacked=True,
        ),
        series(
            "What share fails, and not by the client's fault?",
            "engine_error and no_engine over all.",
            "ratio",
            [
                Query(
                    f"sum by (model) (rate(vramscope_requests_total{failed}[{RATE}])) / "
                    f"({every} > 0)",
                    "{{model}}",
                )
            ],
            threshold="model:vramscope_requests_error:ratio_rate5m",
        ),
        heatmap(
            "How long until the first token?",
            "Time from arrival at the front door to the first byte of a streamed answer.",
            "seconds",
            [Query(f"sum by (le) (increase({ttft}[{RATE}]))", "{{le}}")],
        ),
        series(
            "How long does an answer take?",
            "Time from arrival to the end of the answer: half of the requests, and 99 of 100, are "
            "below.",
            "seconds",
            [
                Query(
                    f"histogram_quantile({share}, sum by (le, model) "
                    f"(rate(vramscope_request_seconds_bucket{M}[{RATE}])))",
                    f"p{name} {{{{model}}}}",
                )
                for share, name in ((0.5, 50), (0.99, 99))
            ],
        ),
    ]


def _decisions() -> Row:
    picks = f"rate(vramscope_router_lora_picks_total{C}[{RATE}])"
    retries = f"rate(vramscope_dispatch_retries_total{where(CLUSTER, engine='~$engine')}[{RATE}])"
    inflight = f"vramscope_inflight_requests{where(CLUSTER, engine='~$engine')}"
    return "Where are they sent, and why?", [
        series(
            "What decided?",
            "Engine picks a second by policy and by what decided.",
            "per second",
            [
                Query(
                    f"sum by (policy, reason) (rate(vramscope_decisions_total{C}[{RATE}]))",
                    "{{policy}}: {{reason}}",
                )
            ],
            stacked=True,
        ),
        series(
            "How often is a warm engine found?",
            "Picks for requests with an adapter, by whether the engine had it in GPU memory.",
            "per second",
            [Query(f"sum by (warmth) ({picks})", "{{warmth}}")],
            stacked=True,
        ),
        series(
            "Who has how many?",
            "Requests sent to each engine and not yet answered.",
            "requests",
            [Query(f"sum by (engine) ({inflight})", "{{engine}}")],
        ),
        series(
            "Which engines had to be tried again?",
            "Requests a second that were sent to another engine before their first byte.",
            "per second",
            [Query(f"sum by (engine) ({retries})", "{{engine}}")],
        ),
        series(
            "Which engines answer?",
            "1 while the engine's process lives and answers its health check.",
            "count",
            [Query(f"min by (engine) (vramscope_engine_up{E})", "{{engine}}")],
            most=1,
        ),
    ]
