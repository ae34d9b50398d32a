"""A run directory whose records are let go after the test."""

import importlib.util
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import pytest

from vramscope.exporters.engine.writer import RecordWriter


def _load(name: str) -> ModuleType:
    """Import a helper that lies beside the tests, which are no package."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


fake_probe = _load("fake_probe")


class Records(Protocol):
    """Writes records into ``folder``."""

    folder: Path

    def engine(self, folder: Path | None = None, **kwargs: Any) -> RecordWriter: ...

    def worker(self, folder: Path | None = None, **kwargs: Any) -> RecordWriter: ...


@pytest.fixture
def records(tmp_path: Path) -> Iterator[Records]:
    with ExitStack() as stack:

        class Made:
            folder = tmp_path / "run"

            def engine(self, folder: Path | None = None, **kwargs: Any) -> RecordWriter:
                writer: RecordWriter = fake_probe.write_engine(folder or self.folder, **kwargs)
                stack.callback(writer.close)
                return writer

            def worker(self, folder: Path | None = None, **kwargs: Any) -> RecordWriter:
                writer: RecordWriter = fake_probe.write_worker(folder or self.folder, **kwargs)
                stack.callback(writer.close)
                return writer

        yield Made()
