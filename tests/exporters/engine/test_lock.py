"""Asking by lock: what the writer sees of readers in other processes."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vramscope.exporters.engine import lock
from vramscope.exporters.engine.writer import RecordWriter

READER = """
import os, sys
from vramscope.exporters.engine.reader import RecordReader
reader = RecordReader(sys.argv[1])
reader.ask()
print(reader.is_alive(), flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[RecordWriter]:
    made = RecordWriter(tmp_path, "a", {}, [])
    yield made
    made.close()


@pytest.fixture
def reader(writer: RecordWriter) -> Iterator["subprocess.Popen[str]"]:
    with start(writer) as process:
        yield process
        process.kill()


def start(writer: RecordWriter) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", READER, str(writer.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"  # asking does not hide that the writer lives
    return process


def test_writer_sees_who_asks_and_that_a_killed_reader_asks_no_more(
    writer: RecordWriter, reader: "subprocess.Popen[str]"
) -> None:
    assert writer.is_asked()
    reader.kill()
    reader.wait()
    assert not writer.is_asked()


def test_of_several_readers_the_last_to_leave_ends_the_asking(
    writer: RecordWriter, reader: "subprocess.Popen[str]"
) -> None:
    with start(writer) as second:
        reader.kill()
        reader.wait()
        assert writer.is_asked()
        second.communicate("\n")
    assert not writer.is_asked()


def test_asking_needs_only_leave_to_read(writer: RecordWriter) -> None:
    with writer.path.open("rb") as file:
        lock.ask(file.fileno())
        assert writer.is_asked()
        # Not closed by hand: in this process that drops the writer's own lock too.
    assert not writer.is_asked()


def test_reader_that_asks_does_not_keep_a_record_alive(
    writer: RecordWriter, reader: "subprocess.Popen[str]"
) -> None:
    with writer.path.open("rb") as file:
        assert lock.is_held(file.fileno())
        writer.close()
        assert not lock.is_held(file.fileno())
    writer.close = lambda: None  # type: ignore[method-assign]  # done
