"""Metrics of engines without the probe that are not the probe's too."""

from vramscope.exporters.catalog.labels import ENGINE, NATIVE
from vramscope.exporters.catalog.metric import Metric

__all__ = ["NATIVE_METRICS"]

KV_USAGE = Metric(
    "vramscope_kv_usage_ratio",
    "gauge",
    "ratio",
    "vLLM's own KV cache usage: blocks that somebody references over the pool. Cached blocks that "
    "nobody references count as free; slack and held blocks count as used.",
    (*ENGINE, *NATIVE),
)
KV_POOL_BLOCKS = Metric(
    "vramscope_kv_pool_blocks",
    "gauge",
    "blocks",
    "Usable blocks of the KV pool by the engine's configuration; absent where one page has several "
    "ranks, of which vLLM says the sum.",
    (*ENGINE, *NATIVE),
)
PROMPT_TOKENS = Metric(
    "vramscope_prompt_tokens_total",
    "counter",
    "tokens",
    "Prompt tokens of requests whose prefill is complete, cached ones included and recomputed ones "
    "not.",
    (*ENGINE, *NATIVE),
)
NATIVE_INPUT = Metric(
    "vramscope_native_input",
    "gauge",
    "",
    "1 when an engine's page has a metric of vLLM's that a signal is made from, 0 when it lacks it "
    "or gives no finite number.",
    (*ENGINE, "metric"),
)
NATIVE_SUPERSEDED = Metric(
    "vramscope_native_superseded",
    "gauge",
    "",
    "1 when the engine behind a page also has a probe record on this host, which is shown instead.",
    ("source",),
)

NATIVE_METRICS: tuple[Metric, ...] = (
    KV_USAGE,
    KV_POOL_BLOCKS,
    PROMPT_TOKENS,
    NATIVE_INPUT,
    NATIVE_SUPERSEDED,
)
