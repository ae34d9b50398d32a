import struct

import pytest

from vramscope.exporters.engine import record
from vramscope.exporters.engine.record import Event, EventKind, Layout, RecordError, Tier

LAYOUT = Layout.of(header_bytes=100, fields=10, scan_fields=20, ring_slots=8, state_bytes=1000)


def test_regions_follow_each_other_without_overlap() -> None:
    regions = [LAYOUT.header, LAYOUT.state, LAYOUT.step, LAYOUT.scan, LAYOUT.ring]
    ends = [record.PREAMBLE_BYTES, *(region.offset + region.size for region in regions)]
    assert all(region.offset >= end for region, end in zip(regions, ends, strict=False))
    assert LAYOUT.file_bytes == ends[-1]


def test_preamble_comes_back() -> None:
    data = record.encode_preamble(LAYOUT)
    assert len(data) == record.PREAMBLE_BYTES
    assert record.decode_preamble(data, LAYOUT.file_bytes) == LAYOUT


def test_newer_schema_is_named_and_says_what_to_do() -> None:
    data = bytearray(record.encode_preamble(LAYOUT))
    struct.pack_into("<I", data, 8, record.SCHEMA + 1)
    with pytest.raises(RecordError, match=r"schema 4 is newer than 3.*upgrade vramscope"):
        record.decode_preamble(bytes(data), LAYOUT.file_bytes)


def test_older_schema_is_named_and_says_what_to_do() -> None:
    data = bytearray(record.encode_preamble(LAYOUT))
    struct.pack_into("<I", data, 8, record.SCHEMA - 1)
    with pytest.raises(RecordError, match=r"schema 2 is older than 3.*restart the engine"):
        record.decode_preamble(bytes(data), LAYOUT.file_bytes)


def test_other_files_are_not_records() -> None:
    with pytest.raises(RecordError, match="not a vramscope record"):
        record.decode_preamble(b"\x7fELF" * 40, 160)


@pytest.mark.parametrize("size", [0, 10, record.PREAMBLE_BYTES - 1])
def test_short_preamble_is_truncated(size: int) -> None:
    with pytest.raises(RecordError, match=f"truncated: {size} bytes"):
        record.decode_preamble(record.encode_preamble(LAYOUT)[:size], size)


def test_short_file_is_truncated_and_says_how_long_it_should_be() -> None:
    data = record.encode_preamble(LAYOUT)
    with pytest.raises(RecordError, match=rf"truncated: 200 of {LAYOUT.file_bytes} bytes"):
        record.decode_preamble(data, 200)


def test_flipped_bit_is_damage() -> None:
    data = bytearray(record.encode_preamble(LAYOUT))
    data[30] ^= 1
    with pytest.raises(RecordError, match="preamble's checksum"):
        record.decode_preamble(bytes(data), LAYOUT.file_bytes)


def test_no_writer_can_make_a_reader_read_more_than_the_bound() -> None:
    huge = Layout.of(100, 10, 20, ring_slots=10**9, state_bytes=10)
    with pytest.raises(RecordError, match="damaged: its parts"):
        record.decode_preamble(record.encode_preamble(huge), huge.file_bytes)


def test_cell_comes_back() -> None:
    assert record.decode_cell(record.encode_cell(7, b"payload") + b"rest") == (7, b"payload")


def test_any_half_written_cell_is_refused() -> None:
    old, new = record.encode_cell(1, bytes(80)), record.encode_cell(2, bytes(range(80)))
    for cut in range(1, len(new)):
        if new[cut:] != old[cut:]:
            assert record.decode_cell(new[:cut] + old[cut:]) is None


def test_cell_never_written_is_refused() -> None:
    assert record.decode_cell(bytes(100)) is None


def packed(event: Event) -> bytes:
    return record.EVENT.pack(*event[:5], 0, *event[5:])


def test_event_comes_back() -> None:
    event = Event(9, 2**63, 12.5, EventKind.PREEMPTED, Tier.CPU, 3, 4096, 1)
    assert record.decode_event(record.encode_event(packed(event))) == event


def test_half_written_event_is_refused() -> None:
    old = record.encode_event(packed(Event(1, 5, 1.0, EventKind.QUEUED)))
    new = record.encode_event(packed(Event(9, 6, 2.0, EventKind.FINISHED)))
    assert record.decode_event(new[:20] + old[20:]) is None


def test_request_hash_is_the_same_on_every_machine() -> None:
    # Written down, since an engine and a controller of different versions must agree.
    assert record.request_hash("cmpl-7f3a-0") == 0xBD0B_C566_E0C2_86E8
