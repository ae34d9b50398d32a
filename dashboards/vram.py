"""Where the VRAM went: the GPU's by part, the KV pool's by cause, and what is wasted of it."""

from typing import Any

from vramscope.dashboards import variables
from vramscope.dashboards.grafana import Row, dashboard
from vramscope.dashboards.panels import Query, heatmap, series, stat
from vramscope.dashboards.selectors import ENGINE, GPU, RATE, where

__all__ = ["UID", "vram"]

UID = "vramscope-vram"
E = where(ENGINE)


def vram() -> dict[str, Any]:
    """Return the dashboard."""
    return dashboard(
        UID,
        "vramscope / VRAM",
        "Where the GPUs' memory went, what the KV pool holds, and what of it is wasted.",
        [
            variables.datasource(),
            variables.cluster(),
            variables.model(),
            variables.engine(),
            variables.hostname(),
            variables.uuid(),
        ],
        [_device(), _pool(), _index(), _waste(), _growth(), _ages()],
    )


def _device() -> Row:
    return "Where did the GPU's memory go?", [
        series(
            "What holds the engines' memory?",
            "Device memory by part: weights, KV pool, LoRA slots, activations, graphs, encoder "
            "cache, context, other processes, free. unexplained is what no part accounts for: "
            "when it grows, look for a leak or holes in the allocator.",
            "bytes",
            [Query(f"sum by (part) (vramscope_vram_bytes{E})", "{{part}}")],
            stacked=True,
        ),
        series(
            "How full is each GPU?",
            "Used over total memory by GPU, as the driver says. It is near 1 by design: vLLM takes "
            "its pool at the start. What matters is what the pool holds, below.",
            "ratio",
            [
                Query(
                    f"sum by (hostname, uuid) (vramscope_gpu_memory_bytes{where(GPU, kind='used')})"
                    " / sum by (hostname, uuid) "
                    f"(vramscope_gpu_memory_bytes{where(GPU, kind='total')})",
                    "{{hostname}} {{uuid}}",
                )
            ],
            most=1,
        ),
    ]


def _pool() -> Row:
    return "What does the KV pool hold?", [
        series(
            "Which blocks are alive, and which are not?",
            "KV blocks by what they hold. live: tokens of running requests. slack: the same "
            "blocks' empty slots. held: in use by no running request. evictable: free, with a "
            "cached prefix. clean: free, with nothing in it.",
            "blocks",
            [Query(f"sum by (state) (vramscope_kv_blocks{E})", "{{state}}")],
            stacked=True,
        ),
        series(
            "How much is saved by sharing, and lost to copies?",
            "saved: blocks that requests share instead of each having their own. duplicates: "
            "cached blocks with a prefix that another block has too (an estimate in large pools).",
            "blocks",
            [
                Query(f"sum by (engine) (vramscope_kv_saved_blocks{E})", "saved {{engine}}"),
                Query(
                    f"sum by (engine) (vramscope_kv_duplicate_blocks{E})", "duplicates {{engine}}"
                ),
            ],
        ),
    ]


def _index() -> Row:
    parts = (
        ("slack", "vramscope_kv_slack_ratio"),
        ("held", "vramscope_kv_held_ratio"),
        ("reserved", "vramscope_kv_reserved_ratio"),
        ("lookahead (of the slack)", "vramscope_kv_lookahead_ratio"),
    )
    return "How fragmented is it, and why?", [
        series(
            "What share of the dead memory can't be had?",
            "KV fragmentation index: of the memory that holds no live token, the share that a new "
            "request can't have. 1 in a full pool is no fault by itself: look at its parts, and at "
            "whether anybody waits.",
            "ratio",
            [Query(f"max by (engine) (vramscope_kv_fragmentation_ratio{E})", "{{engine}}")],
            most=1,
        ),
        series(
            "Which part keeps it?",
            "The index's parts, each over the pool: slack falls with smaller blocks, held with "
            "faster transfers, reserved with a lower watermark.",
            "ratio",
            [Query(f"avg({metric}{E})", name) for name, metric in parts],
        ),
        series(
            "Which requests leave blocks empty?",
            "Slack by the length of its request: short requests in large blocks waste most.",
            "blocks",
            [Query(f"sum by (length) (vramscope_kv_length_slack_blocks{E})", "up to {{length}}")],
            stacked=True,
        ),
        series(
            "Who was refused for want of blocks?",
            "Allocations a second that found too few free blocks: of waiting requests, which wait "
            "on, and of running ones, for which another is preempted.",
            "per second",
            [
                Query(
                    f"sum by (whose) (rate(vramscope_kv_refused_allocations_total{E}[{RATE}]))",
                    "{{whose}}",
                )
            ],
        ),
    ]


def _waste() -> Row:
    return "What does paging save?", [
        series(
            "How much is wasted, and what would be without paging?",
            "paged: of the blocks of running requests, the share without a live token. The others "
            "are what an allocator of one contiguous range a request would waste here, reserving "
            "the longest sequence or doubling.",
            "ratio",
            [
                Query(f"avg(vramscope_kv_waste_ratio{E})", "paged"),
                Query(f"avg by (allocator) (vramscope_kv_static_waste_ratio{E})", "{{allocator}}"),
            ],
            threshold="vramscope_kv_waste_ratio",
            most=1,
        ),
        stat(
            "Blocks saved by sharing",
            "References to blocks beyond each block's first.",
            "blocks",
            [Query(f"sum(vramscope_kv_saved_blocks{E})")],
            size=(6, 8),
        ),
        stat(
            "Exposed to eviction",
            "Of the free blocks, the share whose cached prefix is lost when they are taken. Near "
            "1: each allocation costs a future cache hit.",
            "ratio",
            [Query(f"max(vramscope_kv_eviction_exposure_ratio{E})")],
            threshold="vramscope_kv_eviction_exposure_ratio",
            size=(6, 8),
        ),
    ]


def _growth() -> Row:
    exhaustion = "vramscope_kv_exhaustion_seconds"
    return "When does it run out?", [
        series(
            "How long do the blocks last?",
            "Estimate: time until no usable block is left, at the growth of the last 10 s: the "
            "earliest of ten, the median, the latest of ten. Absent: the pool isn't filling, which "
            "does not mean that there is room.",
            "seconds",
            [Query(f"min by (engine, bound) ({exhaustion}{E})", "{{engine}} {{bound}}")],
            threshold=exhaustion,
        ),
        series(
            "What takes blocks, and what gives them back?",
            "Blocks a second by flow. decode is what admitted requests still need; prefill is what "
            "new ones take.",
            "per second",
            [Query(f"sum by (flow) (vramscope_kv_flow_blocks_per_second{E})", "{{flow}}")],
        ),
    ]


def _ages() -> Row:
    bucket = "vramscope_kv_evicted_age_seconds_bucket"
    return "Does the prefix cache lose what is still wanted?", [
        heatmap(
            "How long had evicted blocks been unused?",
            "Blocks evicted from the prefix cache by the time since their last use. Young ones "
            "that had been hit are hits lost: the cache is too small for its traffic.",
            "seconds",
            [Query(f"sum by (le) (increase({bucket}{E}[{RATE}]))", "{{le}}")],
        ),
        series(
            "How old is what is cached?",
            "Evictable blocks by the time since their last use: by upper bound, seconds.",
            "blocks",
            [Query(f"sum by (age) (vramscope_kv_evictable_age_blocks{E})", "up to {{age}} s")],
            stacked=True,
        ),
    ]
