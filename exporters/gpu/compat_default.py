"""What ``--compat dcgm`` exposes unless a file says otherwise: dcgm-exporter 4.8's default set.

Fields and types are dcgm-exporter's, its one wrong type too, which ``compat`` corrects.
"""

__all__ = ["DEFAULT_COUNTERS"]

DEFAULT_COUNTERS = """
DCGM_FI_DEV_SM_CLOCK, gauge, Clock of the streaming multiprocessors in MHz.
DCGM_FI_DEV_MEM_CLOCK, gauge, Clock of the memory in MHz.

DCGM_FI_DEV_MEMORY_TEMP, gauge, Temperature of the memory in degrees Celsius.
DCGM_FI_DEV_GPU_TEMP, gauge, Temperature of the GPU in degrees Celsius.

DCGM_FI_DEV_POWER_USAGE, gauge, Power that the board draws in W.
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, counter, Energy used since the driver was loaded in mJ.

DCGM_FI_DEV_PCIE_REPLAY_COUNTER, counter, PCIe packets sent again.

DCGM_FI_DEV_GPU_UTIL, gauge, Share of time a kernel ran in %.
DCGM_FI_DEV_MEM_COPY_UTIL, gauge, Share of time memory was read or written in %.
DCGM_FI_DEV_ENC_UTIL, gauge, Share of time the video encoder was busy in %.
DCGM_FI_DEV_DEC_UTIL, gauge, Share of time the video decoder was busy in %.

DCGM_FI_DEV_XID_ERRORS, gauge, Last XID; 0 when there was none.

DCGM_FI_DEV_FB_FREE, gauge, Free memory in MiB.
DCGM_FI_DEV_FB_USED, gauge, Used memory in MiB.
DCGM_FI_DEV_FB_RESERVED, gauge, Memory that the driver and firmware keep in MiB.

DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL, counter, NVLink traffic of all links and both directions in MB/s (1000 KiB/s).

DCGM_FI_DEV_VGPU_LICENSE_STATUS, gauge, Whether the vGPU is licensed.

DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS, counter, Memory rows remapped for uncorrectable errors.
DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS, counter, Memory rows remapped for correctable errors.
DCGM_FI_DEV_ROW_REMAP_FAILURE, gauge, Whether a remapping of rows has failed.

DCGM_FI_DRIVER_VERSION, label, Version of the driver.

DCGM_FI_PROF_GR_ENGINE_ACTIVE, gauge, Share of time the graphics or compute engine was active (0 to 1).
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE, gauge, Share of cycles the tensor cores were active (0 to 1).
DCGM_FI_PROF_DRAM_ACTIVE, gauge, Share of cycles the memory interface was active (0 to 1).
DCGM_FI_PROF_PCIE_TX_BYTES, gauge, PCIe traffic from the GPU to the host in bytes per second.
DCGM_FI_PROF_PCIE_RX_BYTES, gauge, PCIe traffic from the host to the GPU in bytes per second.
"""  # noqa: E501  (a row is a line)
