"""Links and hardware: traffic against capacity, errors, XIDs, memory that wears out, heat."""

from typing import Any

from vramscope.dashboards import variables
from vramscope.dashboards.grafana import Row, dashboard
from vramscope.dashboards.panels import Query, series, table
from vramscope.dashboards.selectors import GPU, HOST, RATE, where

__all__ = ["UID", "links"]

UID = "vramscope-links"
G = where(GPU)
H = where(HOST)
BY_GPU = "by (hostname, uuid)"
GPU_NAME = "{{hostname}} {{uuid}}"


def links() -> dict[str, Any]:
    """Return the dashboard."""
    return dashboard(
        UID,
        "vramscope / Links and hardware",
        "Are links full, are they failing, is hardware wearing out or too hot?",
        [
            variables.datasource(),
            variables.cluster(),
            variables.hostname(),
            variables.uuid(),
        ],
        [_traffic(), _errors(), _memory(), _heat()],
    )


def _traffic() -> Row:
    utilization = "vramscope_gpu_link_utilization_ratio"
    fabric = "vramscope_fabric_utilization_ratio"
    return "Are links full?", [
        series(
            "How full is PCIe?",
            "Traffic over what the link has negotiated, the busier direction. Near 1 for long: "
            "adapter loads or offloading fill it.",
            "ratio",
            [Query(f"max {BY_GPU} ({utilization}{where(GPU, link='pcie')})", GPU_NAME)],
            threshold=utilization,
            most=1,
            size=(8, 8),
        ),
        series(
            "How full is NVLink?",
            "Traffic over the capacity of the links that are up, the busier direction.",
            "ratio",
            [Query(f"max {BY_GPU} ({utilization}{where(GPU, link='nvlink')})", GPU_NAME)],
            threshold=utilization,
            most=1,
            size=(8, 8),
        ),
        series(
            "How full is the fabric?",
            "InfiniBand, RoCE and EFA ports: traffic over capacity, the busier direction.",
            "ratio",
            [
                Query(
                    f"max by (hostname, device, port) ({fabric}{H})",
                    "{{hostname}} {{device}}:{{port}}",
                )
            ],
            threshold=fabric,
            most=1,
            size=(8, 8),
        ),
    ]


def _errors() -> Row:
    replays = f"rate(vramscope_gpu_pcie_replays_total{G}[{RATE}])"
    nvlink = f"rate(vramscope_gpu_nvlink_errors_total{G}[{RATE}])"
    fabric = f"rate(vramscope_fabric_errors_total{H}[{RATE}])"
    return "Are they failing?", [
        series(
            "Does PCIe send again?",
            "Replayed packets a second. More than eight a minute: reseat the card or the riser.",
            "per second",
            [Query(f"sum {BY_GPU} ({replays})", GPU_NAME)],
            size=(8, 8),
        ),
        series(
            "Does NVLink make errors?",
            "Errors a second by kind. Any replay or recovery is worth a look, CRC errors at a "
            "hundred a second are not.",
            "per second",
            [Query(f"sum by (hostname, uuid, kind) ({nvlink})", GPU_NAME + " {{kind}}")],
            size=(8, 8),
        ),
        series(
            "Does the fabric make errors?",
            "Errors a second by port and kind.",
            "per second",
            [
                Query(
                    f"sum by (hostname, device, kind) ({fabric})",
                    "{{hostname}} {{device}} {{kind}}",
                )
            ],
            size=(8, 8),
        ),
        table(
            "Which links are down or slower than they should be?",
            "A row for each GPU: links that are down, and whether a link runs below what GPU and "
            "slot can do.",
            [
                Query(
                    f"sum {BY_GPU} (vramscope_gpu_nvlinks{where(GPU, state='!~active')})", "down"
                ),
                Query(f"max {BY_GPU} (vramscope_gpu_link_degraded{G})", "degraded"),
            ],
            columns={
                "down": ("NVLinks not active", "count"),
                "degraded": ("degraded (1 is yes)", "count"),
            },
            by=("hostname", "uuid"),
        ),
    ]


def _memory() -> Row:
    xid = f"increase(vramscope_gpu_xid_events_total{G}[1h])"
    ecc = f"increase(vramscope_gpu_ecc_errors_total{where(GPU, counter='volatile')}[1h])"
    return "Is hardware wearing out?", [
        table(
            "Which XIDs came within the hour?",
            "NVIDIA's error codes by GPU, with the class of what to do: restart the application, "
            "reset the GPU, restart the machine. Empty is good.",
            [Query(f"sum by (hostname, uuid, xid, class) ({xid}) > 0", "events")],
            columns={"events": ("events", "count")},
            by=("hostname", "uuid", "xid", "class"),
            size=(12, 8),
        ),
        series(
            "Does memory make errors?",
            "ECC errors within an hour. Corrected ones are normal in small numbers; one that is "
            "not corrected ends the process that read it.",
            "count",
            [Query(f"sum by (hostname, uuid, kind) ({ecc})", GPU_NAME + " {{kind}}")],
            size=(12, 8),
        ),
        table(
            "Which rows were remapped?",
            "Rows of memory replaced by spare ones. failed: replace the GPU. pending: reset it.",
            [
                Query(f"sum {BY_GPU} (vramscope_gpu_remapped_rows_total{G})", "rows"),
                Query(f"max {BY_GPU} (vramscope_gpu_row_remap_pending{G})", "pending"),
                Query(f"max {BY_GPU} (vramscope_gpu_row_remap_failed{G})", "failed"),
            ],
            columns={
                "rows": ("rows", "count"),
                "pending": ("pending (1 is yes)", "count"),
                "failed": ("failed (1 is yes)", "count"),
            },
            by=("hostname", "uuid"),
        ),
    ]


def _heat() -> Row:
    throttled = f"rate(vramscope_gpu_throttled_seconds_total{G}[{RATE}])"
    return "Is it too hot?", [
        series(
            "How hot are the GPUs?",
            "Temperature by place. What is too hot differs by product: look whether clocks are "
            "held down.",
            "celsius",
            [
                Query(
                    f"max by (hostname, uuid, place) (vramscope_gpu_temperature_celsius{G})",
                    GPU_NAME + " {{place}}",
                )
            ],
        ),
        series(
            "Are clocks held down?",
            "Share of the time by reason: heat, power cap, power brake.",
            "ratio",
            [Query(f"max by (hostname, uuid, reason) ({throttled})", GPU_NAME + " {{reason}}")],
            threshold="gpu:vramscope_gpu_throttled:ratio_rate5m",
            most=1,
        ),
    ]
