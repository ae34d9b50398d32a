"""Makes synthetic DCGMs, and sources that read them."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from vramscope.exporters.gpu.dcgm import DcgmSource


def _load(name: str) -> ModuleType:
    """Import a helper that lies beside the tests, which are no package."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_synthetic = _load("synthetic_dcgm")


@pytest.fixture
def synthetic() -> ModuleType:
    """The synthetic DCGM's module: ``SyntheticDcgm``, codes, blanks."""
    return _synthetic


@pytest.fixture
def source() -> Callable[..., DcgmSource]:
    """Opens a source on a synthetic DCGM."""

    def open_on(dcgm: Any, **kwargs: Any) -> DcgmSource:
        return DcgmSource(bindings=dcgm.bindings(), **{"clock": lambda: 5.0, **kwargs})

    return open_on
