"""Bytes of tensors, counted by their storages."""

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from vramscope.exporters.engine.probe.budget import Budget, storage_bytes

pytestmark = pytest.mark.vllm


def test_views_and_tied_weights_count_once() -> None:
    weight = torch.zeros(10, 4)
    tensors = [weight, weight.t(), weight[2:], torch.zeros(3, dtype=torch.int8)]
    assert storage_bytes(tensors, "cpu") == 10 * 4 * 4 + 3


def test_tensors_elsewhere_do_not_count() -> None:
    assert storage_bytes([torch.zeros(8, device="meta")], "cpu") == 0


def worker(model: Any) -> Any:
    return SimpleNamespace(
        model_runner=SimpleNamespace(kv_caches=[]),
        get_model=lambda: model,
        device=torch.device("cpu"),
    )


def budget(of: Any, warnings: list[str]) -> dict[str, float]:
    part = Budget(of, lambda: None, warnings.append)
    return dict(zip(part.scan_fields, part.scan(0.0), strict=True))


def test_weights_are_parameters_and_buffers() -> None:
    model = torch.nn.Linear(8, 4)
    model.register_buffer("scale", torch.zeros(5))
    fields = budget(worker(model), [])
    assert fields["vram_weights_bytes"] == (8 * 4 + 4 + 5) * 4


def test_weights_that_a_kernel_has_packed_away_are_not_known() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Linear(4, 2))
    model[0].weight = torch.nn.Parameter(torch.empty(0))
    fields = budget(worker(model), [])
    assert math.isnan(fields["vram_weights_bytes"])


def test_release_with_other_names_switches_the_budget_off_and_says_why() -> None:
    warnings: list[str] = []
    part = Budget(SimpleNamespace(model_runner=None), lambda: None, warnings.append)
    assert part.capabilities() == {"vram": False}
    assert "load_model: AttributeError" in warnings[0]
