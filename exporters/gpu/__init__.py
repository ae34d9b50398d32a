"""GPUs and the links between them: DCGM, NVML, InfiniBand, topology, who uses them."""
