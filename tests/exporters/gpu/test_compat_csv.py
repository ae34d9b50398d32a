"""dcgm-exporter's counters file, good and bad."""

from pathlib import Path

import pytest

from vramscope.exporters.gpu.compat import default_counters
from vramscope.exporters.gpu.compat_csv import (
    CountersFileError,
    Row,
    parse_counters,
    read_counters,
)


def test_rows_comments_blank_lines_and_quoted_help() -> None:
    counters = parse_counters(
        "\ufeff# Format,,\n"
        "\n"
        "  # indented comment\n"
        "DCGM_FI_DEV_DEC_UTIL ,     gauge, Decoder (in %).\n"
        'DCGM_FI_DEV_FB_USED,Gauge,"used, in MiB"\n'
        "DCGM_FI_DEV_FB_FREE, gauge, free, in MiB\r\n"
        "DCGM_FI_DRIVER_VERSION, label, Driver\n",
        "x.csv",
    )
    assert counters.rows == (
        Row("DCGM_FI_DEV_DEC_UTIL", 207, "gauge", "Decoder (in %)."),
        Row("DCGM_FI_DEV_FB_USED", 252, "gauge", "used, in MiB"),
        Row("DCGM_FI_DEV_FB_FREE", 251, "gauge", "free, in MiB"),
        Row("DCGM_FI_DRIVER_VERSION", 1, "label", "Driver"),
    )
    assert counters.field_ids == {207, 252, 251, 1}


def test_all_mistakes_are_said_at_once_with_their_lines() -> None:
    with pytest.raises(CountersFileError) as raised:
        parse_counters(
            "# fields\n"
            "DCGM_FI_DEV_GPU_UTL, gauge, utilization\n"
            "DCGM_FI_DEV_FB_USED, gouge, used\n"
            "DCGM_FI_DEV_FB_FREE, gauge, free\n"
            "DCGM_FI_DEV_FB_FREE, gauge, free again\n"
            "DCGM_FI_DEV_SM_CLOCK gauge\n"
            "DCGM_FI_DEV_MEM_CLOCK, gauge,\n"
            "zzz, gauge, nothing like it\n",
            "my.csv",
        )
    assert str(raised.value).splitlines() == [
        "my.csv:2: DCGM_FI_DEV_GPU_UTL: no such field: did you mean DCGM_FI_DEV_GPU_UTIL?",
        (
            "my.csv:3: DCGM_FI_DEV_FB_USED: type 'gouge': want one of "
            "gauge, counter, histogram, summary, label"
        ),
        "my.csv:5: DCGM_FI_DEV_FB_FREE: it is in line 4 already",
        "my.csv:6: 'DCGM_FI_DEV_SM_CLOCK gauge': want FIELD, type, help",
        "my.csv:7: DCGM_FI_DEV_MEM_CLOCK: its help is empty",
        "my.csv:8: zzz: no such field",
    ]


def test_what_dcgm_exporter_knows_and_is_not_exposed_is_named() -> None:
    counters = parse_counters(
        "DCGM_FI_DEV_FB_USED, gauge, used\n"
        "DCGM_EXP_XID_ERRORS_COUNT, gauge, XIDs\n"
        "DCGM_FI_DEV_CPU_UTIL_TOTAL, gauge, CPU\n",
        "x.csv",
    )
    assert counters.left_out == ("DCGM_EXP_XID_ERRORS_COUNT", "DCGM_FI_DEV_CPU_UTIL_TOTAL")
    assert len(counters.rows) == 1


def test_file_without_a_row_is_a_mistake() -> None:
    with pytest.raises(CountersFileError, match=r"x\.csv: no row"):
        parse_counters("# all of it is a comment\n\n", "x.csv")


def test_file_that_can_not_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(CountersFileError, match=r"none\.csv"):
        read_counters(tmp_path / "none.csv")
    bad = tmp_path / "bad.csv"
    bad.write_bytes(b"DCGM_FI_DEV_FB_USED, gauge, \xff\n")
    with pytest.raises(CountersFileError, match=r"bad\.csv: .*utf-8"):
        read_counters(bad)


def test_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "good.csv"
    path.write_text("DCGM_FI_DEV_FB_USED, gauge, used\n")
    assert read_counters(path).field_ids == {252}


@pytest.mark.parametrize(
    ("name", "field_id"),
    [
        ("DCGM_FI_DEV_FB_USED", 252),
        ("DCGM_FI_DEV_POWER_USAGE", 155),
        ("DCGM_FI_DEV_BOARD_POWER_WATTS", 155),
        ("DCGM_FI_DEV_NVLINK_BANDWIDTH_L17", 496),
        ("DCGM_FI_DEV_NVLINK_THROUGHPUT_L6", 475),
        ("DCGM_FI_PROF_NVLINK_L1_RX_BYTES", 1043),
        ("DCGM_FI_DEV_FB_USED_BYTES", 1627),
    ],
)
def test_names_of_dcgm_3_4_and_4_7_are_known(name: str, field_id: int) -> None:
    (row,) = parse_counters(f"{name}, gauge, help\n", "x.csv").rows
    assert row.field_id == field_id


def test_default_set_is_dcgm_exporter_s_25_families_and_a_label() -> None:
    rows = default_counters().rows
    assert [row.kind for row in rows].count("label") == 1
    assert len(rows) == 26
