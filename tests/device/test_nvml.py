"""The NVML source on a real GPU, where there is one."""

import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).with_name("nvml_check.py")


def test_nvml_on_a_real_gpu() -> None:
    if not Path("/dev/nvidiactl").exists():
        pytest.skip("needs a GPU with NVIDIA's driver")
    done = subprocess.run(
        [sys.executable, str(CHECK)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "vramscope_gpu_memory_bytes{" in done.stdout
