"""Refusals are seen without a hook on each allocation."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from vramscope.exporters.engine.probe.hooks import Guard
from vramscope.exporters.engine.probe.reservations import Reservations


class Manager:
    watermark_blocks = 2
    room = True

    def __init__(self) -> None:
        self.block_pool = object()
        self.asked: list[Any] = []

    def get_computed_blocks(self, request: Any) -> tuple[list[Any], int]:
        return [], 0

    def allocate_slots(self, request: Any, tokens: int, **_: Any) -> list[int] | None:
        self.asked.append((request, tokens))
        return [1] if self.room else None


def request(status: str = "WAITING") -> Any:
    return SimpleNamespace(request_id="a", status=SimpleNamespace(name=status))


@pytest.fixture
def manager() -> Manager:
    return Manager()


@pytest.fixture
def scheduler(manager: Manager) -> Any:
    return SimpleNamespace(
        kv_cache_manager=manager,
        running=[request("RUNNING")],
        _inflight_prefill_reserved_blocks=lambda: 3,
        _request_remaining_blocks=lambda _: 7,
    )


@pytest.fixture
def reservations(scheduler: Any) -> Reservations:
    return Reservations(scheduler, Guard(pytest.fail))


def said(reservations: Reservations) -> dict[str, float]:
    values = reservations.scan(1000.0)
    names = (name.removeprefix("reservation_") for name in reservations.scan_fields)
    return dict(zip(names, values, strict=True))


def admit(manager: Manager, one: Any) -> Any:
    manager.get_computed_blocks(one)
    return manager.allocate_slots(one, 5)


def test_watermark_counts_while_anything_runs(reservations: Reservations, scheduler: Any) -> None:
    assert (said(reservations)["watermark"], said(reservations)["prefill"]) == (2, 3)
    scheduler.running.clear()
    assert said(reservations)["watermark"] == 0


def test_reserved_is_at_most_what_is_free_and_of_the_main_pool(
    reservations: Reservations, manager: Manager
) -> None:
    reservations.scan(1000.0)
    main = SimpleNamespace(pool=manager.block_pool, free=4)
    assert reservations.reserved(main) == 4  # type: ignore[arg-type]
    other = SimpleNamespace(pool=object(), free=4)
    assert reservations.reserved(other) == 0  # type: ignore[arg-type]


def test_refused_request_is_counted_with_what_it_wants_until_the_next_scan(
    reservations: Reservations, manager: Manager
) -> None:
    manager.room = False
    assert admit(manager, request()) is None
    first, second = said(reservations), said(reservations)
    assert (first["refused_waiting"], first["refused_wants"]) == (1, 7)
    assert second["refused_waiting"] == 1
    assert math.isnan(second["refused_wants"])


def test_request_admitted_since_its_refusal_wants_nothing(
    reservations: Reservations, manager: Manager
) -> None:
    manager.room = False
    one = request()
    admit(manager, one)
    one.status.name = "RUNNING"
    assert math.isnan(said(reservations)["refused_wants"])


def test_admitted_request_is_no_refusal(reservations: Reservations, manager: Manager) -> None:
    assert admit(manager, request()) == [1]
    assert said(reservations)["refused_waiting"] == 0


def test_running_request_is_counted_by_its_preemption_and_not_twice(
    reservations: Reservations, manager: Manager
) -> None:
    manager.room = False
    admit(manager, request("RUNNING"))
    reservations.refused_running()
    found = said(reservations)
    assert (found["refused_running"], found["refused_waiting"]) == (1, 0)


def test_allocation_without_a_look_into_the_cache_goes_to_vllms_own_method(
    reservations: Reservations, manager: Manager
) -> None:
    admit(manager, request())
    assert "allocate_slots" not in vars(manager)
    manager.get_computed_blocks(request())
    manager.get_computed_blocks(request())
    assert "allocate_slots" in vars(manager)
    manager.allocate_slots(request(), 5)
    assert "allocate_slots" not in vars(manager)


def test_what_another_set_on_the_manager_is_called_and_stays(
    reservations: Reservations, manager: Manager
) -> None:
    theirs_saw: list[Any] = []

    def theirs(*args: Any) -> None:
        theirs_saw.append(args)

    manager.allocate_slots = theirs  # type: ignore[method-assign, assignment]
    one = request()
    admit(manager, one)
    assert theirs_saw == [(one, 5)]
    assert vars(manager)["allocate_slots"] is theirs
    assert said(reservations)["refused_waiting"] == 1


def test_engine_keeps_its_answer_when_the_probe_fails(scheduler: Any, manager: Manager) -> None:
    errors: list[str] = []
    Reservations(scheduler, Guard(errors.append))
    manager.room = False
    manager.get_computed_blocks(None)
    assert manager.allocate_slots(object(), 5) is None  # it has no status
    assert errors == ["allocate_slots: AttributeError: 'object' object has no attribute 'status'"]


def test_release_without_the_look_into_the_cache_is_said_to_lack_refusals() -> None:
    manager = SimpleNamespace(allocate_slots=lambda: None, block_pool=None)
    scheduler = SimpleNamespace(kv_cache_manager=manager, running=[])
    reservations = Reservations(scheduler, Guard(pytest.fail))
    assert reservations.capabilities() == {"refusals": False}
    assert said(reservations)["prefill"] == 0
