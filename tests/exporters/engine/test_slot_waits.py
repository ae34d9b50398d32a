"""Waits for an adapter slot, by hand."""

from types import SimpleNamespace
from typing import Any

import pytest

from vramscope.exporters.engine.probe.slot_waits import SlotWaits


def request(name: str, adapter: int) -> Any:
    lora = SimpleNamespace(lora_int_id=adapter) if adapter else None
    return SimpleNamespace(request_id=name, lora_request=lora)


def schedule(waits: SlotWaits, now_s: float, *new: str, again: tuple[str, ...] = ()) -> None:
    output = SimpleNamespace(
        scheduled_new_reqs=[SimpleNamespace(req_id=name) for name in new],
        num_scheduled_tokens=dict.fromkeys((*new, *again), 1),
    )
    waits.scheduled(output, now_s)


def fields(waits: SlotWaits) -> tuple[float, ...]:
    return tuple(waits.scan(0.0))


@pytest.fixture
def waits() -> SlotWaits:
    """One slot, used by adapter 1."""
    made = SlotWaits(slots=1)
    made.queued(request("a", 1))
    schedule(made, 0.0, "a")
    return made


def test_request_is_held_from_the_schedule_that_left_it_without_a_slot(waits: SlotWaits) -> None:
    waits.queued(request("b", 2))
    assert fields(waits) == (0, 0, 0)
    schedule(waits, 1.0)
    assert fields(waits) == (1, 0, 1)
    waits.leaving(request("a", 1), 2.0)
    schedule(waits, 3.5, "b")
    assert fields(waits) == (1, 2.5, 0)


def test_request_whose_adapter_runs_waits_for_no_slot(waits: SlotWaits) -> None:
    waits.queued(request("b", 1))
    waits.queued(request("c", 0))
    schedule(waits, 1.0)
    assert fields(waits) == (0, 0, 0)


def test_request_held_twice_is_counted_once_and_its_time_in_full(waits: SlotWaits) -> None:
    waits.queued(request("b", 2))
    schedule(waits, 1.0)
    waits.leaving(request("a", 1), 1.5)
    schedule(waits, 2.0, "b")
    waits.preempted(request("b", 2))
    waits.queued(request("c", 3))
    schedule(waits, 3.0, "c")
    assert fields(waits) == (2 - 1, 1.0, 1)  # b again: not counted again, and held again
    waits.leaving(request("c", 3), 3.5)
    schedule(waits, 4.0, again=("b",))
    assert fields(waits) == (1, 2.0, 0)


def test_held_request_that_leaves_has_waited_until_then(waits: SlotWaits) -> None:
    waits.queued(request("b", 2))
    schedule(waits, 1.0)
    waits.leaving(request("b", 2), 4.0)
    assert fields(waits) == (1, 3.0, 0)
    assert not waits._requests.keys() - {"a"}
    assert not waits._held
