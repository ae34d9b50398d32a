"""Asking an engine, by the probe's own answer to it; and the command's words."""

import json
import sys
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vramscope.exporters.blocks import command
from vramscope.exporters.blocks.ask import PageTableError, ask, find_engine
from vramscope.exporters.blocks.page_table import PageTable
from vramscope.exporters.cli import main as vramscope
from vramscope.exporters.engine import dump_file, lock
from vramscope.exporters.engine.writer import RecordWriter
from vramscope.exporters.errors import MissingExtraError
from vramscope.exporters.pictures.style import style_of

Make = Callable[..., PageTable]
CAN = {"capabilities": {"page_table": True}}


class Clock:
    """Time that passes when somebody sleeps, and what happens then."""

    def __init__(self, on_sleep: Callable[[], object] = lambda: None) -> None:
        self.now_s = 1000.0
        self.on_sleep = on_sleep

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.on_sleep()


def dump(time_s: float, **changed: Any) -> bytes:
    header = {
        "time_s": time_s,
        "time_unix_s": 1e9,
        "took_s": 0.0,
        "null_blocks": [],
        "whole": [False],
        "requests": [],
        "tables": [],
        "scan": {},
        **changed,
    }
    return dump_file.encode(header, [array("I")])


def ask_(writer: RecordWriter, clock: Clock, said: list[str] | None = None) -> PageTable:
    told: list[str] = [] if said is None else said
    return ask(writer.path, 2.0, told.append, clock, clock.sleep)


@pytest.fixture
def writer(records: Any) -> RecordWriter:
    made: RecordWriter = records.engine(busy=1)
    made.write_state(CAN)
    return made


def test_asking_ends_with_the_first_dump_of_a_moment_after_it(writer: RecordWriter) -> None:
    moments = iter((999.0, 999.9, 1000.5, 1001.0))
    clock = Clock(lambda: writer.write_dump(dump(next(moments))))
    assert ask_(writer, clock).time_s == 1000.5
    assert not writer.is_asked()


def test_probe_is_asked_while_the_reader_waits(writer: RecordWriter) -> None:
    asked = []

    def answer() -> None:
        asked.append(writer.is_asked())
        writer.write_dump(dump(clock.now_s))

    clock = Clock(answer)
    ask_(writer, clock)
    assert asked == [True]


def test_two_readers_are_answered_by_one_dump(writer: RecordWriter) -> None:
    second: list[PageTable] = []

    def answer() -> None:
        if not second:
            writer.write_dump(dump(1003.0))
            second.append(ask_(writer, Clock()))

    assert ask_(writer, Clock(answer)).time_s == second[0].time_s == 1003.0


def test_busy_engine_that_makes_no_step_is_said_to_be_slow(writer: RecordWriter) -> None:
    with pytest.raises(PageTableError, match=r"after 2 s, though the engine has work"):
        ask_(writer, Clock())


def test_idle_engine_is_said_to_be_idle_at_once_and_at_the_end(records: Any) -> None:
    idle = records.engine(busy=0)
    idle.write_state(CAN)
    said: list[str] = []
    with pytest.raises(PageTableError, match="send it a request"):
        ask_(idle, Clock(), said)
    assert said == ["a is idle: waiting up to 2 s for its next step, in which it can be seen\n"]


def test_engine_that_ends_meanwhile_is_not_waited_for(
    writer: RecordWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(lambda: monkeypatch.setattr(lock, "is_held", lambda fd: False))
    with pytest.raises(PageTableError, match="ended before"):
        ask_(writer, clock)
    assert clock.now_s < 1001


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"capabilities": {"page_table": False}, "page_table_error": "a full disk"}, "a full disk"),
        ({"capabilities": {"page_table": False}, "error": "a bug"}, "a bug"),
        ({"capabilities": {}}, "older vramscope"),
    ],
)
def test_why_an_engine_cannot_be_seen(
    state: dict[str, Any], words: str, writer: RecordWriter
) -> None:
    writer.write_state(state)
    with pytest.raises(PageTableError, match=words):
        ask_(writer, Clock())


def test_pool_too_large_to_copy_says_so(writer: RecordWriter) -> None:
    clock = Clock(lambda: writer.write_dump(dump(2000.0, refused="9 blocks, at most 8")))
    with pytest.raises(PageTableError, match="too large to copy: 9 blocks, at most 8"):
        ask_(writer, clock)


def test_damaged_dump_is_an_error_with_its_place(writer: RecordWriter) -> None:
    clock = Clock(lambda: writer.write_dump(b"VRAMPAGE" + bytes(99)))
    with pytest.raises(PageTableError, match=r"a\.dp0\.engine0.*damaged|truncated"):
        ask_(writer, clock)


def test_link_in_place_of_a_dump_is_not_followed(writer: RecordWriter, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(dump(2000.0))
    writer.path.with_suffix(".blocks").symlink_to(elsewhere)
    with pytest.raises(PageTableError, match="symbolic link"):
        ask_(writer, Clock())


def test_unknown_engine_is_answered_with_those_there_are(records: Any) -> None:
    records.engine()
    records.engine(header={"dp_rank": 1})
    records.worker()
    (records.folder / "junk.vramscope").write_bytes(b"junk")
    with pytest.raises(PageTableError, match=r"b: no such engine in .*: want one of a, a\.dp1$"):
        find_engine(records.folder, "b")


def test_rank_of_an_engine_is_found_by_its_name(records: Any) -> None:
    records.engine()
    records.engine(header={"dp_rank": 1})
    assert find_engine(records.folder, "a.dp1").name.startswith("a.dp1.engine0.")


def test_two_engines_of_one_id_are_told_by_their_places(records: Any) -> None:
    for pod in ("pod0", "pod1"):
        records.engine(folder=records.folder / pod)
    with pytest.raises(PageTableError, match=r"2 engines have this id: .*pod0.*pod1.*--run-dir"):
        find_engine(records.folder, "a")


def test_no_engine_at_all(tmp_path: Path) -> None:
    with pytest.raises(PageTableError, match="no vLLM engine with the probe runs"):
        find_engine(tmp_path, "a")
    with pytest.raises(PageTableError, match="VRAMSCOPE_RUN_DIR"):
        find_engine(tmp_path / "none", "a")


@pytest.fixture
def seen(make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An engine that is there and answers; where pictures go."""
    monkeypatch.setattr(command, "find_engine", lambda folder, name: folder / name)
    monkeypatch.setattr(command, "ask", lambda path, timeout_s: make(60, [70, 90]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_command_prints_a_picture(seen: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert vramscope(["blocks", "chat-0", "--by", "request", "--color", "always"]) == 0
    assert "2 block tables" in capsys.readouterr().out


def test_command_prints_json_of_all_blocks(seen: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert vramscope(["blocks", "chat-0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pools"][0]["block"]["number"] == list(range(1, 61))
    assert [used["blocks"] for used in found["usage"]] == [6, 5]
    assert found["pools"][0]["fragmentation"] == pytest.approx(1 / 28, abs=0.1)


@pytest.mark.parametrize(("name", "magic"), [("a.svg", b"<svg"), ("a.png", b"\x89PNG")])
def test_command_writes_a_picture_and_prints_nothing(
    name: str, magic: bytes, seen: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert vramscope(["blocks", "chat-0", "-o", name]) == 0
    assert (seen / name).read_bytes().startswith(magic)
    assert capsys.readouterr() == ("", "")


def test_picture_that_cannot_be_written(seen: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert vramscope(["blocks", "chat-0", "-o", "none/a.svg"]) == 1
    assert capsys.readouterr().err.startswith("none/a.svg: No such file or directory")


def test_png_without_pillow_says_what_to_install(
    seen: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'vramscope\[pictures\]'"):
        command.main(["chat-0", "-o", "a.png"])
    assert command.main(["chat-0", "-o", "a.svg"]) == 0


@pytest.mark.parametrize(
    "wrong", [[], ["a", "-o", "a.gif"], ["a", "--timeout", "0"], ["a", "--by", "size"]]
)
def test_misuse_is_refused(wrong: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        command.main(wrong)


@pytest.mark.parametrize(
    ("color", "environment", "terminal", "wanted"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {}, True, False),
    ],
)
def test_when_there_are_colours(
    color: str, environment: dict[str, str], terminal: bool, wanted: bool
) -> None:
    assert style_of(color, environment, terminal, "utf-8").colour is wanted


def test_locale_without_unicode_gets_ascii() -> None:
    assert not style_of("auto", {}, True, "ANSI_X3.4-1968").unicode
    assert style_of("auto", {}, True, "UTF8").unicode
