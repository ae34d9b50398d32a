"""A recording gives back what was: each page, byte for byte."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vramscope.exporters.gpu.compat import DcgmCompat, default_counters
from vramscope.exporters.recording.framing import RecordingError
from vramscope.exporters.recording.reader import Recording
from vramscope.exporters.recording.replay import Replay
from vramscope.exporters.recording.summary import summarise


def compat() -> DcgmCompat:
    return DcgmCompat(default_counters(), "host-1")


def test_each_page_is_byte_for_byte_the_live_one_in_every_form(recorded: Any) -> None:
    file, pages = recorded
    with Recording(file) as recording:
        replay = Replay(recording, compat())
        for live in pages:
            replay.refresh()
            assert {form: replay.page.page(form) for form in live} == live
        assert replay.wait_s(0.0) is None


def test_what_was_recorded_is_worth_the_comparison(recorded: Any) -> None:
    _, pages = recorded
    texts = [next(iter(page.values())).decode() for page in pages]
    assert len(set(texts)) == len(texts)
    assert 'vramscope_build_info{version="1.2.3"}' in texts[0]
    assert 'vramscope_source_up{source="records"} 0.0' in texts[0]
    assert "vramscope_lora_resident{" in texts[1]
    assert 'source="native"' in texts[2]
    assert 'vramscope_source_errors_total{source="native:far"} 1.0' in texts[3]
    assert 'vramscope_source_up{source="gpu"} 0.0' in texts[4]
    assert "vramscope_gpu_memory_bytes{" in texts[5]
    assert "DCGM_FI_DEV_GPU_TEMP{" in texts[6]
    assert 'vramscope_source_errors_total{source="kubelet"} 1.0' in texts[6]
    assert "vramscope_exporter_refresh_seconds 0.0" in texts[6]


def test_refreshes_come_at_the_pace_of_then_times_the_speed(recorded: Any) -> None:
    file, _ = recorded
    with Recording(file) as recording:
        replay = Replay(recording, speed=2.0, clock=lambda: 50.0)
        assert replay.wait_s(50.0) == 0.0
        replay.refresh()
        first_s = replay.shown.at_s
        waited_s = replay.wait_s(50.0)
        replay.refresh()
        assert waited_s == pytest.approx((replay.shown.at_s - first_s) / 2)
        assert replay.wait_s(5000.0) == 0.0  # late: at once


@pytest.mark.parametrize(("offset_s", "engines"), [(0.0, 0), (1.5, 1), (2.5, 2), (1e9, 2)])
def test_page_of_a_moment_is_that_of_the_last_refresh_before(
    recorded: Any, offset_s: float, engines: int
) -> None:
    file, pages = recorded
    with Recording(file) as recording:
        replay = Replay(recording, compat())
        replay.go_to(offset_s)
        assert len(replay.signals()["engines"]) == engines
        assert replay.page.page() in [page[next(iter(page))] for page in pages]


def test_summary_says_what_is_in_it(recorded: Any) -> None:
    file, pages = recorded
    with Recording(file) as recording:
        summary = summarise(recording)
    assert summary.refreshes == len(pages)
    assert summary.engines == {"a": 6, "b": 5, "far": 1}
    assert summary.gpus == {"GPU-0": 6, "GPU-1": 5}
    assert summary.failures["gpu"] == 1
    assert summary.failures["record:bad.vramscope"] == 3
    assert not summary.cut
    assert "recorded 2023-11-14 22:13:20Z on host-1 by vramscope 1.2.3" in summary.as_text()


Damage = Callable[[Callable[[bytes], bytes]], Path]


@pytest.mark.parametrize("lost", [1, 7, 9, 60])
def test_cut_file_gives_all_whole_refreshes(recorded: Any, damage: Damage, lost: int) -> None:
    with Recording(damage(lambda data: data[:-lost])) as recording:
        replay = Replay(recording, compat())
        shown = 0
        while replay.wait_s(0.0) is not None:
            replay.refresh()
            assert replay.page.page() == next(iter(recorded[1][shown].values()))
            shown += 1
    assert shown == len(recorded[1]) - 1
    assert recording.cut


def read_all(path: Path) -> None:
    with Recording(path) as recording:
        for _ in recording:
            pass


@pytest.mark.parametrize(
    ("how", "complaint"),
    [
        (lambda data: b"", "not a vramscope recording: starts with b''"),
        (lambda data: b"\x1f\x8b" + data, "not a vramscope recording"),
        (lambda data: data.replace(b" 1\n", b" 2\n", 1), "format 2 is newer than 1.*upgrade"),
        (lambda data: data[:60], "ends within its header"),
        (lambda data: data[:40] + b"!" + data[41:], "checksum is wrong"),
        (lambda data: data[:-3] + b"!!!", r"damaged at byte \d+, refresh 7: the checksum is wrong"),
        (lambda data: data + b"\xff" * 8, r"refresh 8: a frame of 4294967295 bytes, want 1 to"),
        (lambda data: data + bytes(8), r"refresh 8: a frame of 0 bytes"),
    ],
)
def test_damaged_file_is_an_error_that_says_where_and_what_is_wanted(
    damage: Damage, how: Callable[[bytes], bytes], complaint: str
) -> None:
    path = damage(how)
    with pytest.raises(RecordingError, match=complaint) as raised:
        read_all(path)
    assert str(raised.value).startswith(str(path))


def test_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"no\.rec: No such file"):
        Recording(tmp_path / "no.rec")
