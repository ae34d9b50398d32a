"""Pages recorded from real engines, and pages that are none."""

from collections.abc import Callable

import pytest

from vramscope.exporters.engine.native import names
from vramscope.exporters.engine.native.fetch import Body
from vramscope.exporters.engine.native.page import read_page
from vramscope.exporters.errors import SourceUnavailableError
from vramscope.exporters.signals.native import NativeSample

Page = Callable[[str], bytes]
TEXT = "text/plain"


def read(data: bytes | str, content_type: str = TEXT) -> tuple[NativeSample, ...]:
    return read_page(Body(content_type, data if isinstance(data, bytes) else data.encode()))


def test_busy_engine_with_adapters(page: Page) -> None:
    (sample,) = read(page("lora_busy"))
    assert sample == NativeSample(
        model="tiny",
        dp_rank=0,
        running=4,
        waiting=6,
        kv_usage_ratio=sample.kv_usage_ratio,
        blocks=31,  # of 32: the null block is not usable
        block_size=32,
        generated_tokens=1559,
        prompt_tokens=2374,
        prefix_hit_tokens=1536,
        external_queried_tokens=0,
        external_hit_tokens=0,
        preemptions=8,
        finished=7,
        lora_slots=2,
    )
    assert sample.kv_usage_ratio == pytest.approx(30 / 31)
    assert sample.cached_tokens == 1536


def test_ranks_of_one_page_are_told_apart(page: Page) -> None:
    zero, one = read(page("dp2_busy"))
    assert (zero.dp_rank, zero.running, zero.waiting, zero.preemptions) == (0, 1, 1, 1)
    assert (one.dp_rank, one.running, one.waiting, one.preemptions) == (1, 2, 0, 2)


def test_blocks_of_several_ranks_are_not_known(page: Page) -> None:
    # Each had 32; the page says 64 of each.
    assert b'num_gpu_blocks="64"' in page("dp2_busy")
    assert [sample.blocks for sample in read(page("dp2_busy"))] == [None, None]


def test_tokens_found_outside_the_gpu_are_cached_too(page: Page) -> None:
    (sample,) = read(page("example_connector"))
    assert (sample.external_queried_tokens, sample.external_hit_tokens) == (1918, 160)
    assert sample.cached_tokens == 320 + 160


def test_names_of_all_releases_lead_to_the_same_fields() -> None:
    """Each name alone, by hand: the page of a release that has no other."""
    for field, natives in (names.GAUGES | names.COUNTERS).items():
        for native in natives:
            labels = {"engine": "0", "model_name": "m", **native.labels}
            inside = ",".join(f'{key}="{value}"' for key, value in labels.items())
            (sample,) = read(f"{native.name}{{{inside}}} 0.5\n")
            assert getattr(sample, field) == 0.5, native


def test_transfers_by_their_newer_name_are_not_counted_twice() -> None:
    who = 'engine="0",model_name="m"'
    (sample,) = read(
        f"vllm:kv_offload_load_bytes_total{{{who}}} 100\n"
        f'vllm:kv_offload_total_bytes_total{{{who},transfer_type="CPU_to_GPU"}} 100\n'
        f'vllm:kv_offload_total_bytes_total{{{who},transfer_type="GPU_to_CPU"}} 7\n'
    )
    assert (sample.offload_load_bytes, sample.offload_store_bytes) == (100, 7)


def test_page_without_engine_label_is_rank_0() -> None:
    (sample,) = read('vllm:num_requests_running{model_name="m"} 2\n')
    assert (sample.dp_rank, sample.running, sample.waiting) == (0, 2, None)


def test_aborted_requests_are_no_finished_ones() -> None:
    who = 'engine="0",model_name="m"'
    (sample,) = read(
        "".join(
            f'vllm:request_success_total{{{who},finished_reason="{reason}"}} {count}\n'
            for reason, count in (("stop", 4), ("length", 2), ("abort", 1))
        )
    )
    assert sample.finished == 6


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1"])
def test_number_that_means_nothing_is_not_known(value: str) -> None:
    (sample,) = read(f'vllm:num_requests_running{{engine="0",model_name="m"}} {value}\n')
    assert sample.running is None


def test_gauge_of_several_processes_is_not_known() -> None:
    who = 'engine="0",model_name="m"'
    (sample,) = read(
        f'vllm:num_requests_running{{{who},pid="1"}} 1\n'
        f'vllm:num_requests_running{{{who},pid="2"}} 3\n'
    )
    assert sample.running is None


def test_openmetrics() -> None:
    text = (
        "# TYPE vllm:generation_tokens counter\n"
        'vllm:generation_tokens_total{engine="1",model_name="m"} 5\n'
        "# EOF\n"
    )
    (sample,) = read(text, "application/openmetrics-text")
    assert (sample.dp_rank, sample.generated_tokens) == (1, 5)


@pytest.mark.parametrize(
    ("data", "content_type", "complaint"),
    [
        ("", TEXT, "no vllm: metric with a model_name"),
        ("node_cpu_seconds_total 1\n", TEXT, "no vllm: metric with a model_name"),
        ("<html><body>It works</body></html>", TEXT, "no vllm: metric with a model_name"),
        ('vllm:num_requests_running{engine="0",model_name="m', TEXT, "no metrics text"),
        ("vllm:num_requests_running{} some\n", TEXT, "no metrics text"),
        (b"\xff\xfe\x00", TEXT, "no metrics text"),
        ("vllm:x 1\n", "application/openmetrics-text", "no metrics text"),  # no EOF
    ],
    ids=["empty", "another-program", "html", "cut-off", "no-number", "no-utf8", "cut-openmetrics"],
)
def test_other_pages_are_refused(data: bytes | str, content_type: str, complaint: str) -> None:
    with pytest.raises(SourceUnavailableError, match=complaint):
        read(data, content_type)


def test_page_of_endless_engines_is_refused() -> None:
    lines = (f'vllm:num_requests_running{{engine="{k}",model_name="m"}} 1' for k in range(1025))
    with pytest.raises(SourceUnavailableError, match="1025 engines on one page"):
        read("\n".join(lines))
