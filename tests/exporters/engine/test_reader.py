"""A real writer and a real reader on a real file; the writer that dies is a real process."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vramscope.exporters.engine import record
from vramscope.exporters.engine.reader import RecordReader
from vramscope.exporters.engine.record import EventKind, RecordError
from vramscope.exporters.engine.writer import RecordWriter

FIELDS = ("time_s", "steps")

CHILD = """
import sys, pathlib
from vramscope.exporters.engine.writer import RecordWriter
writer = RecordWriter(pathlib.Path(sys.argv[1]), "a.dp0.engine0", {"role": "engine"}, ["steps"])
writer.write_step([1])
print(writer.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[RecordWriter]:
    writer = RecordWriter(tmp_path, "a.dp0.engine0", {"engine": "a"}, FIELDS, ring_slots=4)
    yield writer
    writer.close()


@pytest.fixture
def reader(writer: RecordWriter) -> Iterator[RecordReader]:
    reader = RecordReader(str(writer.path))
    yield reader
    reader.close()


def test_header_and_steps_arrive(writer: RecordWriter, reader: RecordReader) -> None:
    assert reader.header["engine"] == "a"
    assert reader.step() == {}
    writer.write_step([1.5, 2])
    assert reader.step() == {"time_s": 1.5, "steps": 2.0}
    writer.write_step([1.6, 3])
    assert reader.step()["steps"] == 3


def test_fields_that_are_not_written_keep_their_values(
    writer: RecordWriter, reader: RecordReader
) -> None:
    writer.write_step([1.5, 2])
    writer.add_event(11, 1.0, EventKind.QUEUED)
    writer.write_step([1.6])
    assert reader.step() == {"time_s": 1.6, "steps": 2.0}


def test_state_arrives(writer: RecordWriter, reader: RecordReader) -> None:
    writer.write_state({"resident": {"ad0": "gpu"}})
    assert reader.state() == {"resident": {"ad0": "gpu"}}


def test_thousands_of_adapters_do_not_silence_the_rest(
    writer: RecordWriter, reader: RecordReader
) -> None:
    names = [f"adapter-{number:060}" for number in range(9000)]
    adapters = {"resident": dict.fromkeys(names, "cpu"), "bytes": dict.fromkeys(names, 65536)}
    writer.write_step([1.5, 2])
    writer.write_state({"error": None, **adapters})
    assert reader.state() == {"error": None, "adapters_omitted": True}
    assert reader.step()["steps"] == 2  # nor run over what comes after the state


def test_events_become_visible_with_their_step(writer: RecordWriter, reader: RecordReader) -> None:
    writer.add_event(11, 1.0, EventKind.QUEUED, tokens=5)
    writer.write_step([1, 1])
    events, lost, following = reader.events(0)
    assert [(e.number, e.request, e.kind, e.tokens) for e in events] == [(0, 11, 1, 5)]
    assert (lost, following) == (0, 1)


def test_no_event_is_lost_or_told_twice_while_they_move_to_the_ring(
    writer: RecordWriter, reader: RecordReader
) -> None:
    told, first = [], 0
    for step in range(30):
        for k in range(step % 4):
            writer.add_event(step * 10 + k, 0.0, EventKind.QUEUED)
        writer.write_step([0, step])
        events, lost, first = reader.events(first)
        assert lost == 0
        told += [e.request for e in events]
    assert told == [step * 10 + k for step in range(30) for k in range(step % 4)]


def test_overrun_events_are_counted_as_lost(writer: RecordWriter, reader: RecordReader) -> None:
    for step in range(7):  # 21 events: 20 have gone to the ring, which has kept 4
        for k in range(3):
            writer.add_event(step * 3 + k, 0.0, EventKind.QUEUED)
        writer.write_step([0, step])
    events, lost, following = reader.events(2)
    assert [e.request for e in events] == [16, 17, 18, 19, 20]
    assert (lost, following) == (14, 21)


def test_batch_longer_than_the_ring_keeps_the_newest(
    writer: RecordWriter, reader: RecordReader
) -> None:
    for k in range(11):
        writer.add_event(k, 0.0, EventKind.QUEUED)
    writer.write_step([0, 1])
    events, lost, _ = reader.events(0)
    assert [e.request for e in events] == [4, 5, 6, 7, 8, 9, 10]
    assert lost == 4


def test_only_owner_and_group_may_read(writer: RecordWriter, tmp_path: Path) -> None:
    assert writer.path.stat().st_mode & 0o777 == 0o640
    fresh = tmp_path / "fresh"
    RecordWriter(fresh, "b", {}, FIELDS).close()
    assert fresh.stat().st_mode & 0o777 == 0o750


def test_folder_anyone_can_write_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(PermissionError, match="writable by everyone: want mode 0750"):
        RecordWriter(tmp_path, "b", {}, FIELDS)


def test_links_are_not_followed(writer: RecordWriter, tmp_path: Path) -> None:
    link = tmp_path / f"link{record.SUFFIX}"
    link.symlink_to(writer.path)
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        RecordReader(str(link))


def test_engine_named_with_slashes_stays_in_its_folder(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path, "../../org/model", {}, FIELDS)
    assert writer.path.parent == tmp_path
    writer.close()


def test_truncated_while_open_is_an_error_and_no_crash(
    writer: RecordWriter, reader: RecordReader
) -> None:
    writer.write_step([1, 1])
    os.truncate(writer.path, 200)
    with pytest.raises(RecordError, match="truncated: step"):
        reader.step()
    writer.write_step([2, 2])  # the engine's side goes on


def test_damaged_step_is_an_error_after_bounded_tries(
    writer: RecordWriter, reader: RecordReader
) -> None:
    writer.write_step([1, 1])
    with writer.path.open("r+b") as file:
        file.seek(writer.layout.step.offset + 20)
        file.write(b"\xff")
    with pytest.raises(RecordError, match="step's checksum is wrong"):
        reader.step()


def test_failed_start_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        RecordWriter(tmp_path, "b", {}, FIELDS, group="no-such-group-here")
    assert list(tmp_path.iterdir()) == []


def test_life_and_death_show_in_the_lock(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        path = Path(child.stdout.readline().strip())
        reader = RecordReader(str(path))
        assert reader.is_alive()
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert not reader.is_alive()
        assert path.exists()  # a kill leaves the file: only the lock tells
        reader.close()
    finally:
        child.kill()
        child.communicate()
    successor = RecordWriter(tmp_path, "b.dp0.engine0", {}, FIELDS)
    assert [entry.name for entry in tmp_path.iterdir()] == [successor.path.name]
    successor.close()


def test_process_that_ends_takes_its_record_and_no_live_one_with_it(
    writer: RecordWriter, tmp_path: Path
) -> None:
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path)], input="", capture_output=True, text=True
    )
    assert child.returncode == 0, child.stderr
    assert list(tmp_path.iterdir()) == [writer.path]
