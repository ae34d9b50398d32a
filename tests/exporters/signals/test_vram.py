"""Where a device's memory went, by hand; GPUs are synthetic samples."""

from dataclasses import replace

import pytest

from vramscope.exporters.signals.gpu import GpuIdentity, GpuProcess, GpuSample
from vramscope.exporters.signals.vram import VramSample, device_parts, engine_parts

GIB = 1 << 30
GPU = GpuSample(
    GpuIdentity(0, "GPU-a"),
    read_at_s=0.0,
    memory_bytes={"total": 80 * GIB, "free": 6 * GIB, "used": 73 * GIB, "reserved": 1 * GIB},
    processes=(GpuProcess(7, 70 * GIB), GpuProcess(8, 3 * GIB)),
)
VRAM = VramSample(
    rank=0,
    pid=7,
    gpu_uuid="GPU-a",
    bytes={
        "weights": 15 * GIB,
        "kv_pool": 44 * GIB,
        "lora_slots": 1 * GIB,
        "activation_peak": 4 * GIB,
        "encoder_cache": 1 * GIB,
        "graphs": 2 * GIB,
    },
    allocator_bytes=65 * GIB,
    graphs_allocator_bytes=1 * GIB,
)


def test_encoder_cache_is_taken_from_the_activation_peak_that_held_a_full_one() -> None:
    parts = engine_parts(VRAM)
    assert (parts["activations"], parts["encoder_cache"]) == (3 * GIB, 1 * GIB)


def test_parts_sum_to_the_devices_total() -> None:
    parts = {**engine_parts(VRAM), **device_parts(VRAM, GPU)}
    assert sum(parts.values()) == 80 * GIB


def test_each_part_that_takes_the_device_to_know() -> None:
    parts = device_parts(VRAM, GPU)
    assert parts == {
        # The process has 70; 65 in the allocator and 1 of graphs beside it; 1 of the driver's.
        "context": (70 - 65 - 1 + 1) * GIB,
        "other_processes": 3 * GIB,
        "free": 6 * GIB,
        "unexplained": (80 - 5 - 3 - 6 - (15 + 44 + 1 + 3 + 1 + 2)) * GIB,
    }


def test_memory_set_aside_and_not_taken_yet_is_below_zero() -> None:
    fresh = replace(VRAM, allocator_bytes=61 * GIB)  # no full batch yet
    gpu = replace(
        GPU,
        memory_bytes={**GPU.memory_bytes, "free": 10 * GIB, "used": 69 * GIB},
        processes=(GpuProcess(7, 66 * GIB), GpuProcess(8, 3 * GIB)),
    )
    assert device_parts(fresh, gpu)["unexplained"] == -4 * GIB


def test_process_that_the_gpu_does_not_list_leaves_its_parts_unexplained() -> None:
    parts = device_parts(replace(VRAM, pid=None), GPU)
    assert set(parts) == {"free", "unexplained"}
    assert parts["unexplained"] == (80 - 6 - 66) * GIB


@pytest.mark.parametrize("memory", [{}, {"total": 80 * GIB}])
def test_device_of_unknown_total_has_no_parts(memory: dict[str, float]) -> None:
    assert device_parts(VRAM, replace(GPU, memory_bytes=memory)) == {}


def test_sleeping_engine_has_no_parts_for_what_it_took_may_be_away() -> None:
    asleep = replace(VRAM, asleep=True)
    assert engine_parts(asleep) == {}
    assert device_parts(asleep, GPU) == {}


def test_allocator_of_vllms_own_makes_the_context_unknown() -> None:
    parts = device_parts(replace(VRAM, allocator_bytes=5 * GIB), GPU)
    assert "context" not in parts
