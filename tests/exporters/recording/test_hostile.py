"""Files that somebody made by hand: whole frames, with anything in them."""

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from vramscope.exporters.recording import reader
from vramscope.exporters.recording.codec import encode, own_schema
from vramscope.exporters.recording.framing import (
    MAGIC,
    MOST_FRAME_BYTES,
    RecordingError,
    frame,
)
from vramscope.exporters.recording.reader import Recording
from vramscope.exporters.refresh import Refresh

HEADER = {
    "version": "1",
    "hostname": "h",
    "unix_s": 1.0,
    "monotonic_s": 1.0,
    "period_s": 1.0,
    "schema": own_schema(),
}


def make(path: Path, *patches: Any, header: Any = HEADER) -> Path:
    packer = zlib.compressobj()
    data = MAGIC + frame(json.dumps(header).encode())
    for patch in patches:
        text = patch if isinstance(patch, bytes) else json.dumps(patch).encode()
        data += frame(packer.compress(text) + packer.flush(zlib.Z_SYNC_FLUSH))
    path.write_bytes(data)
    return path


def read_all(path: Path) -> list[Refresh]:
    with Recording(path) as recording:
        return list(recording)


def tree(at_s: Any = 1.0, **fields: Any) -> list[Any]:
    made: list[Any] = encode(Refresh(1.0))
    names = own_schema()["Refresh"]
    for name, value in {"at_s": at_s, **fields}.items():
        made[names.index(name)] = value
    return made


def test_refresh_of_nothing_is_read(tmp_path: Path) -> None:
    assert read_all(make(tmp_path / "x", [tree()])) == [Refresh(1.0)]


@pytest.mark.parametrize(
    ("patches", "complaint"),
    [
        ([b"{"], "not JSON"),
        ([b"[" * 100_000], "not JSON|recursion"),
        ([[b"x".decode()]], "Refresh: got 'x', want 5 values"),
        ([[tree()[:-1]]], "Refresh: got .*, want 5 values"),
        ([[tree("soon")]], "Refresh.at_s: got 'soon', want float"),
        ([[tree(float("nan"))]], "its time is nan"),
        ([[tree(float("inf"))]], "its time is inf"),
        ([[tree(5.0)], [0, 4.0]], "refresh 2: its time is 4.0, want 5.0 or later"),
        ([[tree()], [99, 1.0]], "place 99 of a list of 5"),
        ([[tree()], [-1, 1.0]], "place -1 of a list of 5"),
        ([[tree()], {"a": 1}], "keys that are not there"),
        ([[tree()], [1, 2, 3]], "a list of odd length"),
        ([[tree()], [0, [0, 1]]], "a list is changed where there is none"),
        ([[0, 1.0]], "a list is changed where there is none"),
        ([[tree(engines=[["records", 3, None]])]], "EngineSample: got 3"),
        ([[tree(engines={"a": 1})]], "Refresh.engines: got .*, want a list"),
        ([b" " * (MOST_FRAME_BYTES + 1)], f"unpacks to more than {MOST_FRAME_BYTES} bytes"),
    ],
)
def test_anything_in_a_frame_is_an_error_that_says_where(
    tmp_path: Path, patches: list[Any], complaint: str
) -> None:
    with pytest.raises(RecordingError, match=complaint) as raised:
        read_all(make(tmp_path / "x", *patches))
    assert "damaged at byte" in str(raised.value)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"version": 1}, "its header's version is 1, want text"),
        ({"unix_s": None}, "its header's unix_s is None, want a number"),
        ({"schema": {"Refresh": "at_s"}}, "has no schema"),
        ({"schema": None}, "has no schema"),
    ],
)
def test_anything_in_a_header_is_an_error(
    tmp_path: Path, change: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(RecordingError, match=complaint):
        read_all(make(tmp_path / "x", header={**HEADER, **change}))


def test_header_that_is_no_object_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="its header is no object"):
        read_all(make(tmp_path / "x", header=[]))


def test_frames_that_only_grow_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MOST_HELD_BYTES", 2000)
    grow = [1, [[["records", None, "x" * 900]]]]
    with pytest.raises(RecordingError, match="more than 2000 bytes since a whole refresh"):
        read_all(make(tmp_path / "x", [tree()], *[[0, 2.0, *grow]] * 3))
