"""What an engine's process knows of its GPUs, without taking one for it."""

from types import SimpleNamespace
from typing import Any

import pytest

from vramscope.exporters.engine.probe.identity import gpu_uuids

A = "11111111-2222-3333-4444-555555555555"
B = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
NO_TORCH = SimpleNamespace()


def torch(*uuids: object, current: int = 0, initialized: bool = True) -> Any:
    cuda = SimpleNamespace(
        is_initialized=lambda: initialized,
        current_device=lambda: current,
        get_device_properties=lambda index: SimpleNamespace(uuid=uuids[index]),
    )
    return SimpleNamespace(cuda=cuda)


def test_worker_names_the_device_it_made_current() -> None:
    assert gpu_uuids(1, {}, torch(A, B, current=1)) == [f"GPU-{B}"]


def test_current_device_beats_the_environment() -> None:
    visible = {"CUDA_VISIBLE_DEVICES": f"GPU-{A},GPU-{B}"}
    assert gpu_uuids(1, visible, torch(A, B, current=1)) == [f"GPU-{B}"]


def test_mig_instance_is_named_by_the_environment() -> None:
    assert gpu_uuids(1, {"CUDA_VISIBLE_DEVICES": f"MIG-{B}"}, torch(A)) == [f"MIG-{B}"]


def test_process_that_has_not_initialised_cuda_does_not() -> None:
    untouched = torch(initialized=False)
    untouched.cuda.current_device = untouched.cuda.get_device_properties = pytest.fail
    assert gpu_uuids(2, {"CUDA_VISIBLE_DEVICES": "0,1"}, untouched) == []


@pytest.mark.parametrize(
    ("visible", "ranks", "uuids"),
    [
        (f"GPU-{A}, GPU-{B}", 2, [f"GPU-{A}", f"GPU-{B}"]),
        (f"MIG-GPU-{A}/1/0", 1, [f"MIG-GPU-{A}/1/0"]),
        (f"GPU-{A},GPU-{B}", 1, []),  # which of the two is not said
        (f"GPU-{A}", 2, []),
        (f"GPU-{A},1", 2, []),
        ("GPU-1111", 1, []),  # a prefix: CUDA knows which, we don't
        ("0", 1, []),
        ("", 1, []),
        ("-1", 1, []),
    ],
)
def test_environment_tells_only_if_it_names_each_rank(
    visible: str, ranks: int, uuids: list[str]
) -> None:
    assert gpu_uuids(ranks, {"CUDA_VISIBLE_DEVICES": visible}, NO_TORCH) == uuids


def test_without_gpus_there_is_nothing_to_name() -> None:
    assert gpu_uuids(1, {}, NO_TORCH) == []


def test_torch_of_another_make_is_not_an_error() -> None:
    no_uuid = torch(A)
    no_uuid.cuda.get_device_properties = lambda _: SimpleNamespace()
    assert gpu_uuids(1, {}, no_uuid) == []
    assert gpu_uuids(1, {}, torch(b"\x01\x02")) == []
    assert gpu_uuids(1, {}, SimpleNamespace(cuda=SimpleNamespace())) == []
