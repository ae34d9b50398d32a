"""The synthetic NVML, built with gcc and put under the real nvidia-ml-py."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pynvml  # type: ignore[import-untyped]
import pytest

SOURCE = Path(__file__).parents[1] / "synthetic" / "nvml.c"
REAL_NAME = "libnvidia-ml.so.1"


class Build(Protocol):
    """Builds the library without some symbols; returns the folder it is in."""

    def __call__(self, *without: str, soname: str = REAL_NAME) -> Path: ...


@pytest.fixture(scope="session")
def build_nvml(tmp_path_factory: pytest.TempPathFactory) -> Build:
    def build(*without: str, soname: str = REAL_NAME) -> Path:
        folder = tmp_path_factory.mktemp("nvml")
        options = [f"-DWITHOUT_{what}" for what in without]
        strict = ["-Wall", "-Wextra", "-Werror"]
        command = ["gcc", "-shared", "-fPIC", "-O1", *strict, f"-Wl,-soname,{soname}", *options]
        subprocess.run([*command, str(SOURCE), "-o", str(folder / REAL_NAME)], check=True)
        return folder

    return build


@pytest.fixture(scope="session")
def whole_library(build_nvml: Build) -> Path:
    return build_nvml(soname="libsynthetic-nvml.so")


@pytest.fixture(scope="session")
def real_named_library(build_nvml: Build) -> Path:
    """For a program of its own: found by LD_LIBRARY_PATH, as the driver's is by ldconfig."""
    return build_nvml()


class Scenario:
    """What the synthetic GPUs do; ``clock`` is the time, theirs and the reader's."""

    def __init__(self, file: Path, library: ctypes.CDLL) -> None:
        self.file = file
        self.library = library
        self._values: dict[str, Any] = {"clock_s": 10.0}
        self._serial = 0
        self._write()

    def clock(self) -> float:
        return float(self._values["clock_s"])

    def tick(self, seconds: float) -> None:
        self.set(clock_s=self.clock() + seconds)

    def set(self, **values: Any) -> None:
        self._values.update(values)
        self._write()

    def _write(self) -> None:
        new = self.file.with_suffix(".new")
        new.write_text("".join(f"{key}={value}\n" for key, value in self._values.items()))
        # The library tells a new scenario by its inode and time; a file system's clock is coarse.
        self._serial += 1
        os.utime(new, ns=(self._serial, self._serial))
        new.replace(self.file)


@pytest.fixture
def load_nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Scenario]:
    """Puts a library under nvidia-ml-py for one test; a copy of its own, so with a fresh state."""

    def load(folder: Path) -> Scenario:
        copy = tmp_path / "libsynthetic-nvml.so"
        shutil.copy(folder / REAL_NAME, copy)
        library = ctypes.CDLL(str(copy))
        monkeypatch.setattr(pynvml, "nvmlLib", library)
        monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
        monkeypatch.setattr(pynvml, "_nvmlLib_refcount", 0)
        file = tmp_path / "scenario"
        monkeypatch.setenv("SYNTHETIC_NVML", str(file))
        return Scenario(file, library)

    return load


@pytest.fixture
def nvml(load_nvml: Callable[[Path], Scenario], whole_library: Path) -> Scenario:
    """Eight GPUs with 18 NVLinks each and a switch, Hopper."""
    return load_nvml(whole_library)
