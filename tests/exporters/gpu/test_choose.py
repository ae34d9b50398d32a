"""Which source is read, and when that changes."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from vramscope.exporters.errors import SourceUnavailableError, VramscopeError
from vramscope.exporters.gpu.choose import AutoSource, open_source
from vramscope.exporters.gpu.source import GpuSource
from vramscope.exporters.signals.gpu import GpuIdentity, GpuReading, GpuSample

XID_79 = ("GPU-a", 79)


class Fake:
    """A source whose host is up or down; it opens itself anew once ``reopens``."""

    def __init__(self, name: str, *, up: bool = True) -> None:
        self.name = name
        self.up = up
        self.reopens = False
        self.opened = 0
        self.closed = 0
        self.xids: dict[tuple[str, int], int] = {}

    def open(self) -> GpuSource:
        if not self.up:
            raise SourceUnavailableError(f"{self.name} is away")
        self.opened += 1
        return self

    def read(self) -> GpuReading:
        if not self.up:
            self.up = self.reopens
            raise SourceUnavailableError(f"{self.name} went away")
        sample = GpuSample(GpuIdentity(0, "GPU-a", name=self.name), read_at_s=0.0)
        return GpuReading((sample,), {"GPU-b": "lost"}, dict(self.xids), {"GPU-b": 1})

    def close(self) -> None:
        self.closed += 1


class Host:
    """Both sources, and the time."""

    def __init__(self) -> None:
        self.dcgm = Fake("dcgm")
        self.nvml = Fake("nvml")
        self.now_s = 0.0

    def choose(self, wanted: str = "auto") -> GpuSource:
        openers: dict[str, Callable[[], GpuSource]] = {
            "dcgm": self.dcgm.open,
            "nvml": self.nvml.open,
        }
        return open_source(wanted, clock=lambda: self.now_s, openers=openers)


@pytest.fixture
def host() -> Host:
    return Host()


def read_from(source: GpuSource) -> str:
    (sample,) = source.read().samples
    assert sample.gpu.name == source.name
    return source.name


def test_dcgm_is_taken_where_it_works(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert read_from(host.choose()) == "dcgm"
    assert host.nvml.opened == 0
    assert caplog.messages == ["gpu: reading from dcgm"]


def test_nvml_is_taken_where_dcgm_does_not_work_and_one_line_says_why(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    host.dcgm.up = False
    assert read_from(host.choose()) == "nvml"
    assert caplog.messages == ["gpu: reading from nvml; not dcgm: dcgm is away"]


def test_what_a_source_reads_is_passed_on_whole(host: Host) -> None:
    host.dcgm.xids = {XID_79: 1}
    assert host.choose().read() == host.dcgm.read()


def test_dcgm_that_appears_later_is_taken_within_a_minute(host: Host) -> None:
    host.dcgm.up = False
    source = host.choose()
    host.dcgm.up = True
    host.now_s = 59.0
    assert read_from(source) == "nvml"
    host.now_s = 60.0
    assert read_from(source) == "dcgm"
    assert host.nvml.closed == 1


def test_better_source_is_tried_once_a_minute_and_no_more(host: Host) -> None:
    host.dcgm.up = False
    tries = []

    def count() -> GpuSource:
        tries.append(host.now_s)
        return host.dcgm.open()

    openers = {"dcgm": count, "nvml": host.nvml.open}
    source = AutoSource(openers, clock=lambda: host.now_s)
    for second in range(130):
        host.now_s = float(second)
        source.read()
    assert tries == [0.0, 60.0, 120.0]


def test_no_source_at_all_says_why_of_each_until_one_appears(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    host.dcgm.up = host.nvml.up = False
    source = host.choose()
    both = "no GPU can be read: dcgm: dcgm is away; nvml: nvml is away"
    assert caplog.messages == []  # whoever reads it says it, once
    with pytest.raises(SourceUnavailableError, match=both):
        source.read()
    host.nvml.up = True
    host.now_s = 60.0
    assert read_from(source) == "nvml"


def test_source_that_opens_itself_anew_is_kept(host: Host) -> None:
    source = host.choose()
    host.dcgm.up, host.dcgm.reopens = False, True
    assert read_from(source) == "dcgm"
    assert host.nvml.opened == 0


def test_source_that_can_not_be_opened_anew_is_left_and_taken_again(host: Host) -> None:
    source = host.choose()
    host.dcgm.up = False
    host.now_s = 500.0
    assert read_from(source) == "nvml"
    assert host.dcgm.closed == 1
    host.dcgm.up = True
    host.now_s = 560.0
    assert read_from(source) == "dcgm"


def test_all_sources_gone_is_an_error_and_the_first_to_return_is_read(host: Host) -> None:
    source = host.choose()
    host.dcgm.up = host.nvml.up = False
    with pytest.raises(SourceUnavailableError, match="dcgm went away; nvml: nvml is away"):
        source.read()
    host.dcgm.up = True
    assert read_from(source) == "dcgm"


def test_xids_stay_counted_when_the_source_changes(host: Host) -> None:
    source = host.choose()
    host.dcgm.xids = {XID_79: 2}
    assert source.read().xids == {XID_79: 2}
    host.dcgm.up = False
    host.nvml.xids = {XID_79: 1, ("GPU-a", 13): 1}
    assert source.read().xids == {XID_79: 3, ("GPU-a", 13): 1}
    assert source.read().xids == {XID_79: 3, ("GPU-a", 13): 1}


@pytest.mark.parametrize("wanted", ["dcgm", "nvml"])
def test_source_that_was_asked_for_is_never_replaced(wanted: str, host: Host) -> None:
    fake = host.dcgm if wanted == "dcgm" else host.nvml
    fake.up = False
    source = host.choose(wanted)
    with pytest.raises(SourceUnavailableError, match=f"{wanted} is away"):
        source.read()
    fake.up = True
    host.now_s = 10.0
    assert read_from(source) == wanted


def test_none_reads_nothing_and_never_fails(host: Host) -> None:
    source = host.choose("none")
    assert (source.name, source.read()) == ("none", GpuReading(()))
    source.close()
    assert (host.dcgm.opened, host.nvml.opened) == (0, 0)


def test_closing_closes_what_is_read(host: Host) -> None:
    host.choose().close()
    assert host.dcgm.closed == 1


def test_unknown_word_names_the_known_ones() -> None:
    with pytest.raises(VramscopeError, match=r"--gpu-source gpu: want one of auto\|dcgm\|nvml"):
        open_source("gpu")


def test_source_that_stays_away_is_asked_once_a_read(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    source = host.choose("dcgm")
    host.dcgm.up = False
    for _ in range(3):
        with pytest.raises(SourceUnavailableError):
            source.read()
    assert caplog.messages == ["gpu: dcgm: dcgm went away: opening it anew"]


def test_host_without_dcgm_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VRAMSCOPE_DCGM_BINDINGS", str(tmp_path))
    source = open_source("dcgm")
    with pytest.raises(SourceUnavailableError, match=r"no GPU can be read: dcgm: .*no readable"):
        source.read()
