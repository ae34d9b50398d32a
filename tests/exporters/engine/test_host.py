"""Records of a host to samples: who is found, who is dropped, and what is said of the broken."""

import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vramscope.exporters.engine import record
from vramscope.exporters.engine.host import HostRecords, Reading
from vramscope.exporters.signals.samples import EngineSample, EngineState

NOW_S = 1000.5


@pytest.fixture
def host(records: Any) -> Iterator[HostRecords]:
    # A writer in this process loses its lock when a reader of it is closed (POSIX): so the
    # readers of a test are closed after it.
    host = HostRecords(records.folder, clock=lambda: NOW_S)
    yield host
    host.close()


def samples(readings: list[Reading]) -> list[EngineSample]:
    return [reading.sample for reading in readings if reading.sample is not None]


def test_missing_folder_is_one_error_that_says_what_to_do(tmp_path: Path) -> None:
    (reading,) = HostRecords(tmp_path / "none").read()
    assert reading.source == "records"
    assert "no such folder" in (reading.error or "")
    assert "VRAMSCOPE_RUN_DIR" in (reading.error or "")


def test_empty_folder_reads_and_has_no_engines(tmp_path: Path) -> None:
    assert HostRecords(tmp_path).read() == [Reading("records")]


def test_engine_is_read_with_its_age(records: Any, host: HostRecords) -> None:
    records.engine()
    (sample,) = samples(host.read())
    assert (sample.engine, sample.model, sample.state) == ("a", "tiny", EngineState.BUSY)
    assert sample.age_s == pytest.approx(0.5)
    assert sample.kv[0].age_s == pytest.approx(0.6)
    assert sample.preemptions == {"kv_exhausted": 3, "cache_reset": 0, "other": 0}
    assert sample.lora is None


def test_states_of_a_pool_sum_to_its_blocks(records: Any, host: HostRecords) -> None:
    records.engine()
    (sample,) = samples(host.read())
    kv = sample.kv[0]
    assert kv.live + kv.slack + kv.held + kv.evictable + kv.clean == kv.blocks


def test_idle_engine_is_fresh_however_old(records: Any, host: HostRecords) -> None:
    records.engine(busy=0, time_s=1.0, scan_time_s=1.0)
    (sample,) = samples(host.read())
    assert sample.state is EngineState.IDLE
    assert (sample.age_s, sample.kv[0].age_s) == (0, 0)


@pytest.mark.parametrize(
    ("last_step_s", "step_p99_s", "state"),
    [
        (NOW_S - 4.9, 0.02, EngineState.BUSY),
        (NOW_S - 5.1, 0.02, EngineState.HUNG),
        (NOW_S - 9.9, 1.0, EngineState.BUSY),
        (NOW_S - 10.1, 1.0, EngineState.HUNG),
    ],
)
def test_busy_without_a_step_for_long_is_hung(
    records: Any, host: HostRecords, last_step_s: float, step_p99_s: float, state: EngineState
) -> None:
    records.engine(time_s=last_step_s, step_p99_s=step_p99_s)
    (sample,) = samples(host.read())
    assert sample.state is state


def test_adapters_come_from_the_worker_of_rank_0(records: Any, host: HostRecords) -> None:
    records.engine()
    records.worker()
    records.worker(rank=1, requests_gpu=99)
    (sample,) = samples(host.read())
    assert sample.lora is not None
    assert sample.lora.requests == {"gpu": 6, "cpu": 1, "disk": 1}
    assert sample.lora.resident == {"ad0": "gpu", "ad1": "cpu"}
    assert sum(sample.lora.load_counts["disk"]) == sample.lora.loads["disk"]


def test_each_pod_has_a_subfolder(records: Any, host: HostRecords) -> None:
    records.engine(records.folder / "pod-1")
    records.engine(records.folder / "pod-2", header={"engine": "b"})
    assert sorted(sample.engine for sample in samples(host.read())) == ["a", "b"]


def test_worker_of_another_pod_is_not_this_engines(records: Any, host: HostRecords) -> None:
    records.engine(records.folder / "pod-1")
    records.worker(records.folder / "pod-2")
    (sample,) = samples(host.read())
    assert sample.lora is None


def test_dead_engine_is_dropped(records: Any, host: HostRecords) -> None:
    child = (
        "import importlib.util, os, pathlib, sys;"
        "spec = importlib.util.spec_from_file_location('fake_probe', sys.argv[1]);"
        "fake = importlib.util.module_from_spec(spec); spec.loader.exec_module(fake);"
        "fake.write_engine(pathlib.Path(sys.argv[2])); os._exit(0)"
    )
    fake_probe = Path(__file__).parent.parent / "fake_probe.py"
    subprocess.run([sys.executable, "-c", child, fake_probe, records.folder], check=True)
    assert len(list(records.folder.iterdir())) == 1
    assert host.read() == [Reading("records")]


def test_engine_that_leaves_is_gone_at_the_next_read(records: Any, host: HostRecords) -> None:
    writer = records.engine()
    assert len(samples(host.read())) == 1
    writer.path.unlink()
    assert host.read() == [Reading("records")]


def test_probe_that_switched_itself_off_is_an_error_with_its_reason(
    records: Any, host: HostRecords
) -> None:
    records.engine(capabilities={"steps": False, "blocks": False}, error="schedule: KeyError: 'x'")
    _, reading = host.read()
    assert reading.source == "engine:a"
    assert "switched itself off: schedule: KeyError: 'x'" in (reading.error or "")
    assert reading.sample is not None
    assert reading.sample.kv == ()


def broken(folder: Path, name: str, data: bytes) -> None:
    (folder / f"{name}{record.SUFFIX}").write_bytes(data)


def test_one_broken_record_never_hides_the_others(records: Any, host: HostRecords) -> None:
    writer = records.engine()
    # By the writer's own descriptor: closing another would drop its lock, in its own process.
    whole = os.pread(writer._fd, writer.layout.file_bytes, 0)
    newer = bytearray(whole)
    struct.pack_into("<I", newer, 8, 9)
    broken(records.folder, "newer", bytes(newer))
    broken(records.folder, "cut", whole[:500])
    broken(records.folder, "text", b"hello" * 100)
    broken(records.folder, "empty", b"")
    readings = {reading.source: reading for reading in host.read()}
    assert readings["engine:a"].error is None
    for name, complaint in {
        "newer": "schema 9 is newer than 3",
        "cut": f"truncated: 500 of {len(whole)} bytes",
        "text": "not a vramscope record",
        "empty": "truncated: 0 bytes",
    }.items():
        error = readings[f"record:{name}{record.SUFFIX}"].error or ""
        assert complaint in error
        assert error.startswith(str(records.folder))
        assert "\n" not in error


def test_record_without_a_needed_field_is_damaged_and_says_which(
    records: Any, host: HostRecords
) -> None:
    writer = records.engine(header={"groups": None})
    _, reading = host.read()
    assert reading.sample is None
    assert str(writer.path) in (reading.error or "")
    assert "damaged" in (reading.error or "")


@pytest.mark.parametrize(
    "wrong",
    [
        {"header": {"dp_rank": "zero"}},
        {"header": {"dp_rank": None}},
        {"header": {"pools": 7}},
        {"running": float("inf")},
        {"steps": float("nan")},
        {"capabilities": ["blocks"]},
    ],
    ids=["text-rank", "no-rank", "pools", "infinite", "not-a-number", "capabilities"],
)
def test_record_with_anything_in_it_is_its_own_error_and_hides_no_other(
    records: Any, host: HostRecords, wrong: dict[str, Any]
) -> None:
    records.engine(header={"engine": "good"})
    header = {**wrong.pop("header", {}), "engine": "bad"}
    writer = records.engine(records.folder / "pod", header=header, **wrong)
    readings = host.read()
    assert [sample.engine for sample in samples(readings)] == ["good"]
    (error,) = [reading.error for reading in readings if reading.error is not None]
    assert error.startswith(f"{writer.path}: damaged: ")


def test_state_nested_too_deep_to_read_is_an_error(records: Any, host: HostRecords) -> None:
    writer = records.engine()
    nested = record.encode_cell(9, b"[" * 100_000 + b"]" * 100_000)
    os.pwrite(writer._fd, nested, writer.layout.state.offset)
    _, reading = host.read()
    assert "damaged: state is not JSON" in (reading.error or "")


def test_engine_that_claims_adapters_and_has_no_worker_is_read_all_the_same(
    records: Any, host: HostRecords
) -> None:
    records.engine(capabilities={"steps": True, "lora": True})
    (sample,) = samples(host.read())
    assert sample.lora is None
