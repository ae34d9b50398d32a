"""When the probe looks, what it then writes, and that its errors stay its own."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vramscope.exporters.engine import dump_file
from vramscope.exporters.engine.probe import dump
from vramscope.exporters.engine.probe.dump import PageTableDump, page_table
from vramscope.exporters.engine.reader import RecordReader
from vramscope.exporters.engine.writer import RecordWriter


class Fake:
    """Attributes of a test's choosing."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__ = attributes


def block(number: int, references: int = 0, block_hash: bytes | None = None) -> Fake:
    return Fake(block_id=number, ref_cnt=references, block_hash=block_hash)


class MambaSpec:
    pass


class Engine:
    """A scheduler with a pool of five blocks, and the clock of the host."""

    def __init__(self) -> None:
        blocks = [block(0), block(1, 2, b"x"), block(2, 1), block(3, 0, b"x"), block(4)]
        self.pool = Fake(blocks=blocks, null_block=blocks[0])
        run = Fake(
            request_id="cmpl-a-0",
            lora_request=Fake(lora_name="ad0"),
            num_computed_tokens=20,
            num_prompt_tokens=18,
            num_output_tokens=3,
        )
        wait = Fake(
            request_id="b",
            lora_request=None,
            num_computed_tokens=0,
            num_prompt_tokens=40,
            num_output_tokens=0,
            status=Fake(name="WAITING_FOR_REMOTE_KVS"),
        )
        tables = {"cmpl-a-0": [blocks[1], blocks[2]], "b": [blocks[1]], "left": [], "c": blocks[:1]}
        self.managers = [
            Fake(
                req_to_blocks=tables, kv_cache_spec=Fake(), get_num_skipped_tokens=lambda n: n - 8
            ),
            Fake(req_to_blocks={}, kv_cache_spec=MambaSpec()),
        ]
        self.scheduler = Fake(running=[run], requests={"cmpl-a-0": run, "b": wait})
        self.now_s = 1000.0
        self.errors: list[str] = []

    def clock(self) -> float:
        return self.now_s

    def probe(self, writer: RecordWriter) -> PageTableDump:
        return PageTableDump(
            self.scheduler,
            [self.pool],
            self.managers,
            False,
            writer,
            self.errors.append,
            self.clock,
        )


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[RecordWriter]:
    made = RecordWriter(tmp_path, "a", {}, ["time_s"], ["scan_time_s", "pool0_live"])
    yield made
    made.close()


def scan(probe: PageTableDump, engine: Engine, busy: bool = True) -> None:
    probe.after_scan(engine.now_s, busy, [engine.now_s, 1.25])


def when(writer: RecordWriter) -> float | None:
    """Return the moment of the dump there is."""
    path = writer.path.with_suffix(".blocks")
    return dump_file.decode(path.read_bytes())[0]["time_s"] if path.exists() else None


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def asking(writer: RecordWriter) -> RecordReader:
    reader = RecordReader(str(writer.path))
    reader.ask()
    return reader


def test_nothing_is_written_unless_somebody_asks(engine: Engine, writer: RecordWriter) -> None:
    probe = engine.probe(writer)
    for _ in range(5):
        engine.now_s += 2
        scan(probe, engine)
    assert names(writer.path.parent) == [writer.path.name]


def test_probe_looks_once_a_second_while_there_is_work(
    engine: Engine, writer: RecordWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []
    monkeypatch.setattr(writer, "is_asked", lambda: looks.append(engine.now_s))
    probe = engine.probe(writer)
    for _ in range(21):
        scan(probe, engine)
        engine.now_s += 0.125
    assert looks == [1000.0, 1001.0, 1002.0]


def test_probe_looks_in_the_step_that_leaves_no_work(engine: Engine, writer: RecordWriter) -> None:
    probe = engine.probe(writer)
    scan(probe, engine)
    reader = asking(writer)
    engine.now_s += 0.01
    scan(probe, engine, busy=True)
    assert when(writer) is None
    scan(probe, engine, busy=False)
    assert when(writer) == 1000.01
    reader.close()


def test_dumps_take_no_more_than_their_share_of_the_engines_time(
    engine: Engine, writer: RecordWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(data: bytes) -> None:
        RecordWriter.write_dump(writer, data)
        engine.now_s += 0.05

    monkeypatch.setattr(writer, "write_dump", slow)
    probe, reader = engine.probe(writer), asking(writer)
    scan(probe, engine)
    assert when(writer) == 1000.0
    for busy in (True, False):  # 50 ms of 1%: none for 5 s, whatever the engine does
        engine.now_s = 1004.9
        scan(probe, engine, busy)
        assert when(writer) == 1000.0
    engine.now_s = 1005.2
    scan(probe, engine)
    assert when(writer) == 1005.2
    reader.close()


def test_dump_holds_tables_counts_and_equal_hashes(engine: Engine) -> None:
    header, arrays = page_table(engine.scheduler, [engine.pool], engine.managers, False)
    no = dump_file.UNHASHED
    assert [list(numbers) for numbers in arrays] == [
        [0, 2, 1, 0, 0],
        [no, 1, no, 1, no],
        [1, 2, 1, 0],
    ]
    assert header["null_blocks"] == [0]
    assert header["whole"] == [False, True]
    assert header["tables"] == [(0, 0, 2, 12), (0, 1, 1, 0), (0, 2, 1, 0)]


def test_dump_says_who_holds_blocks_and_not_what_they_said(engine: Engine) -> None:
    header, _ = page_table(engine.scheduler, [engine.pool], engine.managers, False)
    running, waiting, left = header["requests"]
    assert running | {"hash": 0} == {
        "hash": 0,
        "state": "running",
        "computed_tokens": 20,
        "prompt_tokens": 18,
        "output_tokens": 3,
        "adapter": "ad0",
    }
    assert waiting["state"] == "waiting_for_remote_kvs"
    assert set(left) == {"hash", "state"}
    assert left["state"] == "finished"


def test_dump_has_the_scan_of_its_moment(engine: Engine, writer: RecordWriter) -> None:
    probe, reader = engine.probe(writer), asking(writer)
    scan(probe, engine)
    header, _ = dump_file.decode(writer.path.with_suffix(".blocks").read_bytes())
    assert header["scan"] == {"scan_time_s": 1000.0, "pool0_live": 1.25}
    reader.close()


def test_pool_that_would_take_too_long_is_refused_with_its_size(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dump, "MOST_ENTRIES", 3)
    header, arrays = page_table(engine.scheduler, [engine.pool], engine.managers, False)
    assert arrays == []
    assert header["refused"].startswith("5 blocks and 4 table entries: at most")


def test_error_switches_dumps_off_and_nothing_else(engine: Engine, writer: RecordWriter) -> None:
    probe, reader = engine.probe(writer), asking(writer)
    delattr(engine.pool, "blocks")
    scan(probe, engine)
    assert engine.errors == ["page table: AttributeError: 'Fake' object has no attribute 'blocks'"]
    assert not probe.enabled
    engine.now_s += 60
    scan(probe, engine)
    assert len(engine.errors) == 1
    reader.close()


def test_dump_is_readable_by_the_group_whatever_the_umask(writer: RecordWriter) -> None:
    before = os.umask(0o077)
    try:
        writer.write_dump(b"x")
    finally:
        os.umask(before)
    path = writer.path.with_suffix(".blocks")
    assert path.stat().st_mode & 0o777 == 0o640


def test_link_in_the_dumps_place_is_replaced_not_written_through(
    writer: RecordWriter, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    path = writer.path.with_suffix(".blocks")
    for name in (path, path.with_name(f".{path.name}.new")):
        name.symlink_to(victim)
    writer.write_dump(b"x")
    assert victim.read_bytes() == b"mine"
    assert path.read_bytes() == b"x"
    assert not path.is_symlink()


def test_dump_that_cannot_be_written_leaves_the_one_before(
    writer: RecordWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.write_dump(b"before")

    class Full:
        def __init__(self, fd: int, mode: str) -> None:
            self.fd = fd

        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *_: object) -> None:
            os.close(self.fd)

        def write(self, data: bytes) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", Full)
    with pytest.raises(OSError, match="No space"):
        writer.write_dump(b"after")
    assert writer.path.with_suffix(".blocks").read_bytes() == b"before"
    assert len(names(writer.path.parent)) == 2


def test_dump_goes_with_its_record(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path, "a", {}, [])
    writer.write_dump(b"x")
    writer.close()
    assert names(tmp_path) == []
