"""Eight synthetic GPUs, behind the library that the real nvidia-ml-py loads."""

import subprocess
from pathlib import Path

__all__ = ["build_nvml"]

SOURCE = Path(__file__).parents[2] / "tests" / "exporters" / "gpu" / "synthetic" / "nvml.c"


def build_nvml(folder: Path) -> None:
    """Build the library for a program with ``folder`` in its ``LD_LIBRARY_PATH``."""
    library = folder / "libnvidia-ml.so.1"
    compile_ = ["gcc", "-shared", "-fPIC", "-O1", f"-Wl,-soname,{library.name}"]
    subprocess.run([*compile_, str(SOURCE), "-o", str(library)], check=True)
