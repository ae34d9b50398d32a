"""Metrics of the GPUs and the links between them, whichever source reads them."""

from vramscope.exporters.catalog.metric import Metric

__all__ = ["GPU", "GPU_METRICS"]

GPU = (
    "gpu",
    "uuid",
    "hostname",
    "mig_profile",
    "mig_instance",
    "pod",
    "namespace",
    "container",
    "hpc_job",
    "shared",
)
"""Labels of each GPU series; those that are empty (a whole GPU has no MIG profile, a GPU without
Kubernetes no pod) are left out of the page."""

GPU_INFO = Metric(
    "vramscope_gpu_info",
    "gauge",
    "",
    "1, with what a GPU or MIG instance is.",
    (*GPU, "name", "pci_bus_id", "driver_version"),
)
GPU_AGE = Metric(
    "vramscope_gpu_age_seconds",
    "gauge",
    "seconds",
    "Time since a GPU's metrics were read, by family: base each refresh, health (ECC, remapped "
    "rows), links (NVLink state and errors) and pcie (rate, where only a slow call gives it) "
    "less often.",
    (*GPU, "family"),
)
GPU_UNREADABLE = Metric(
    "vramscope_gpu_unreadable",
    "gauge",
    "",
    "1 for a GPU that is there and can't be read (fallen off the bus, wants a reset).",
    ("gpu", "uuid", "hostname"),
)
GPU_MEMORY = Metric(
    "vramscope_gpu_memory_bytes",
    "gauge",
    "bytes",
    "GPU memory by kind (total, used, free, reserved); used, free and reserved sum to total.",
    (*GPU, "kind"),
)
GPU_PROCESS_MEMORY = Metric(
    "vramscope_gpu_process_memory_bytes",
    "gauge",
    "bytes",
    "GPU memory of one process, for the 16 largest of a GPU, by process id as the driver sees it "
    "(of the host).",
    (*GPU, "pid"),
)
GPU_UTILIZATION = Metric(
    "vramscope_gpu_utilization_ratio",
    "gauge",
    "ratio",
    "Share of time in which something ran on a unit (gpu, memory_copy, encoder, decoder); says "
    "nothing of how full the unit was.",
    (*GPU, "unit"),
)
GPU_ACTIVITY = Metric(
    "vramscope_gpu_activity_ratio",
    "gauge",
    "ratio",
    "How full a unit was, by hardware counters (graphics, sm, sm_occupancy, tensor, dram).",
    (*GPU, "unit"),
)
GPU_BOUND = Metric(
    "vramscope_gpu_bound",
    "gauge",
    "",
    "1 for what holds the GPU up (idle: SM active < 0.2; else the largest of tensor, dram, pcie, "
    "nvlink if it is 0.6 or more; else latency; unknown when an input is missing), 0 for the "
    "others.",
    (*GPU, "by"),
)
GPU_CLOCK = Metric(
    "vramscope_gpu_clock_hertz", "gauge", "hertz", "Clock rate (sm, memory).", (*GPU, "clock")
)
GPU_TEMPERATURE = Metric(
    "vramscope_gpu_temperature_celsius",
    "gauge",
    "celsius",
    "Temperature by place (gpu, memory).",
    (*GPU, "place"),
)
GPU_POWER = Metric("vramscope_gpu_power_watts", "gauge", "watts", "Power drawn by the board.", GPU)
GPU_ENERGY = Metric(
    "vramscope_gpu_energy_joules_total", "counter", "joules", "Energy drawn by the board.", GPU
)
GPU_THROTTLE = Metric(
    "vramscope_gpu_throttled",
    "gauge",
    "",
    "1 for each reason that holds the clocks down now, 0 for the others.",
    (*GPU, "reason"),
)
GPU_THROTTLE_SECONDS = Metric(
    "vramscope_gpu_throttled_seconds_total",
    "counter",
    "seconds",
    "Time in which the clocks were held down, by reason; reasons overlap.",
    (*GPU, "reason"),
)
GPU_ECC = Metric(
    "vramscope_gpu_ecc_errors_total",
    "counter",
    "errors",
    "Memory errors found by ECC, by kind (corrected, uncorrected) and counter (volatile: since "
    "the driver was loaded; aggregate: of the GPU's life).",
    (*GPU, "kind", "counter"),
)
GPU_REMAPPED_ROWS = Metric(
    "vramscope_gpu_remapped_rows_total",
    "counter",
    "rows",
    "Memory rows replaced by spare ones, by the error that led to it (correctable, uncorrectable).",
    (*GPU, "kind"),
)
GPU_ROW_REMAP_FAILED = Metric(
    "vramscope_gpu_row_remap_failed",
    "gauge",
    "",
    "1 when a row could not be remapped: the GPU wants replacing.",
    GPU,
)
GPU_ROW_REMAP_PENDING = Metric(
    "vramscope_gpu_row_remap_pending", "gauge", "", "1 when a row remap waits for a reset.", GPU
)
GPU_XIDS = Metric(
    "vramscope_gpu_xid_events_total",
    "counter",
    "events",
    "XID error events since the exporter started, by code and by the class of action that it asks "
    "for (application, watch, reset_gpu, restart_node, check_link, check_hardware, unknown).",
    ("gpu", "uuid", "hostname", "xid", "class"),
)
GPU_PCIE_BYTES = Metric(
    "vramscope_gpu_pcie_bytes_total",
    "counter",
    "bytes",
    "Bytes over PCIe (tx: from the GPU to the host).",
    (*GPU, "direction"),
)
GPU_PCIE_RATE = Metric(
    "vramscope_gpu_pcie_bytes_per_second",
    "gauge",
    "bytes per second",
    "Bytes over PCIe per second, as the GPU measures it or over the last refresh.",
    (*GPU, "direction"),
)
GPU_PCIE_GENERATION = Metric(
    "vramscope_gpu_pcie_generation",
    "gauge",
    "",
    "PCIe generation, now (an idle link downshifts) and at most.",
    (*GPU, "at"),
)
GPU_PCIE_WIDTH = Metric(
    "vramscope_gpu_pcie_lanes", "gauge", "lanes", "PCIe lanes, now and at most.", (*GPU, "at")
)
GPU_PCIE_REPLAYS = Metric(
    "vramscope_gpu_pcie_replays_total", "counter", "packets", "PCIe packets sent again.", GPU
)
GPU_NVLINK_BYTES = Metric(
    "vramscope_gpu_nvlink_bytes_total",
    "counter",
    "bytes",
    "Bytes over all NVLinks of a GPU.",
    (*GPU, "direction"),
)
GPU_NVLINK_RATE = Metric(
    "vramscope_gpu_nvlink_bytes_per_second",
    "gauge",
    "bytes per second",
    "Bytes over all NVLinks of a GPU per second, as the GPU measures it or over the last refresh.",
    (*GPU, "direction"),
)
GPU_NVLINKS = Metric(
    "vramscope_gpu_nvlinks", "gauge", "links", "NVLinks by state (up, down).", (*GPU, "state")
)
GPU_NVLINK_UP = Metric(
    "vramscope_gpu_nvlink_up",
    "gauge",
    "",
    "1 when an NVLink is up, 0 when it is down; peer is the PCI bus id at its far end, or switch.",
    (*GPU, "link", "peer"),
)
GPU_NVLINK_LINK_BYTES = Metric(
    "vramscope_gpu_nvlink_link_bytes_total",
    "counter",
    "bytes",
    "Bytes over one NVLink, where asked for.",
    (*GPU, "link", "direction"),
)
GPU_NVLINK_ERRORS = Metric(
    "vramscope_gpu_nvlink_errors_total",
    "counter",
    "errors",
    "Errors of all NVLinks of a GPU, by kind (replay, recovery, crc_flit, crc_data; NVLink 5: "
    "receive, recovery, symbol).",
    (*GPU, "kind"),
)
GPU_NVLINK_LINK_ERRORS = Metric(
    "vramscope_gpu_nvlink_link_errors_total",
    "counter",
    "errors",
    "Errors of one NVLink, where asked for, by kind.",
    (*GPU, "link", "kind"),
)
GPU_C2C_RATE = Metric(
    "vramscope_gpu_c2c_bytes_per_second",
    "gauge",
    "bytes per second",
    "Bytes over the chip-to-chip link per second.",
    (*GPU, "direction"),
)
GPU_LINK_CAPACITY = Metric(
    "vramscope_gpu_link_capacity_bytes_per_second",
    "gauge",
    "bytes per second",
    "What a link (pcie, nvlink: all links together) carries in one direction at best.",
    (*GPU, "link"),
)
GPU_LINK_UTILIZATION = Metric(
    "vramscope_gpu_link_utilization_ratio",
    "gauge",
    "ratio",
    "Bytes per second in a direction over what the link (pcie, nvlink) carries at best.",
    (*GPU, "link", "direction"),
)
GPU_LINK_DEGRADED = Metric(
    "vramscope_gpu_link_degraded",
    "gauge",
    "",
    "1 when a link is worse than it should be: PCIe below its generation or lanes while the GPU "
    "works, an NVLink down. No sample while it can't be told (an idle GPU's link downshifts).",
    (*GPU, "link"),
)
GPU_TOPOLOGY = Metric(
    "vramscope_gpu_topology_level",
    "gauge",
    "",
    "1 for each pair of GPUs, with how near they are (NV#: # NVLinks; else PIX, PXB, PHB, NODE, "
    "SYS from near to far).",
    ("gpu", "peer", "hostname", "level"),
)
GPU_NUMA_NODE = Metric(
    "vramscope_gpu_numa_node", "gauge", "", "NUMA node a GPU hangs on.", ("gpu", "hostname")
)
HOST_TOPOLOGY = Metric(
    "vramscope_host_topology_info",
    "gauge",
    "",
    "1, with where the host stands: its rack, and the island of hosts on one fabric (configured, "
    "else by InfiniBand subnet).",
    ("hostname", "rack", "island"),
)

GPU_METRICS: tuple[Metric, ...] = (
    GPU_INFO,
    GPU_AGE,
    GPU_UNREADABLE,
    GPU_MEMORY,
    GPU_PROCESS_MEMORY,
    GPU_UTILIZATION,
    GPU_ACTIVITY,
    GPU_BOUND,
    GPU_CLOCK,
    GPU_TEMPERATURE,
    GPU_POWER,
    GPU_ENERGY,
    GPU_THROTTLE,
    GPU_THROTTLE_SECONDS,
    GPU_ECC,
    GPU_REMAPPED_ROWS,
    GPU_ROW_REMAP_FAILED,
    GPU_ROW_REMAP_PENDING,
    GPU_XIDS,
    GPU_PCIE_BYTES,
    GPU_PCIE_RATE,
    GPU_PCIE_GENERATION,
    GPU_PCIE_WIDTH,
    GPU_PCIE_REPLAYS,
    GPU_NVLINK_BYTES,
    GPU_NVLINK_RATE,
    GPU_NVLINKS,
    GPU_NVLINK_UP,
    GPU_NVLINK_LINK_BYTES,
    GPU_NVLINK_ERRORS,
    GPU_NVLINK_LINK_ERRORS,
    GPU_C2C_RATE,
    GPU_LINK_CAPACITY,
    GPU_LINK_UTILIZATION,
    GPU_LINK_DEGRADED,
    GPU_TOPOLOGY,
    GPU_NUMA_NODE,
    HOST_TOPOLOGY,
)
