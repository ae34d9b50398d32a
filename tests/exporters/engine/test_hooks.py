from collections.abc import Iterator

import pytest

from vramscope.exporters.engine.probe.hooks import Guard, hook


class Engine:
    def step(self, blocks: object, scale: int = 1) -> int:
        return sum(blocks) * scale  # type: ignore[call-overload,no-any-return]

    def any_step(self, *blocks: int, scale: int = 1) -> int:
        return sum(blocks) * scale


def numbers() -> Iterator[int]:
    yield from (1, 2, 3)


def test_hooks_see_arguments_and_result() -> None:
    seen: list[object] = []
    engine = Engine()
    attached = hook(
        engine,
        "step",
        Guard(pytest.fail),
        before=lambda blocks, scale: seen.append(("before", blocks, scale)),
        after=lambda result, blocks, scale: seen.append(("after", result, scale)),
    )
    assert attached
    assert engine.step([1, 2], scale=2) == 6
    assert seen == [("before", [1, 2], 2), ("after", 6, 2)]


def test_hooked_method_takes_what_it_took_before() -> None:
    engine = Engine()
    for name in ("step", "any_step"):
        hook(engine, name, Guard(pytest.fail), before=lambda *_, **__: None)
    assert [engine.step([3]), engine.step([3], 2), engine.step(blocks=[3], scale=4)] == [3, 6, 12]
    assert [engine.any_step(), engine.any_step(1, 2), engine.any_step(3, scale=2)] == [0, 3, 6]


def test_method_is_hooked_twice_and_each_hook_runs_once() -> None:
    engine = Engine()
    seen: list[str] = []
    for who in ("first", "second"):
        hook(engine, "step", Guard(pytest.fail), after=lambda *_, who=who: seen.append(who))
    assert engine.step([1]) == 1
    assert seen == ["first", "second"]


def test_missing_method_is_reported_and_nothing_is_set() -> None:
    engine = Engine()
    assert not hook(engine, "renamed_in_next_release", Guard(pytest.fail))
    assert vars(engine) == {}


@pytest.mark.parametrize("when", ["before", "after"])
def test_first_error_switches_everything_off_and_the_engine_goes_on(when: str) -> None:
    told: list[str] = []
    guard = Guard(told.append)
    calls = 0

    def broken(*_: object, **__: object) -> None:
        nonlocal calls
        calls += 1
        raise ZeroDivisionError("of ours")

    engine = Engine()
    hook(engine, "step", guard, **{when: broken})  # type: ignore[arg-type]
    assert [engine.step([2]), engine.step([3])] == [2, 3]
    assert calls == 1
    assert told == ["step: ZeroDivisionError: of ours"]


def test_error_in_telling_the_error_stays_inside() -> None:
    guard = Guard(lambda _: 1 / 0)  # type: ignore[arg-type]
    guard.disable("step", ValueError("x"))
    assert not guard.enabled


def test_engine_errors_pass_through_unchanged() -> None:
    engine = Engine()
    guard = Guard(pytest.fail)
    hook(engine, "step", guard, after=lambda *_: None)
    with pytest.raises(TypeError):
        engine.step(["a"])
    assert guard.enabled


def test_looking_at_an_iterator_does_not_spend_it() -> None:
    engine = Engine()
    seen: list[int] = []
    hook(engine, "step", Guard(pytest.fail), before=lambda blocks: seen.extend(blocks), spend=True)
    assert engine.step(numbers()) == 6
    assert seen == [1, 2, 3]


def test_iterator_survives_when_the_probe_is_off() -> None:
    engine = Engine()
    guard = Guard(lambda _: None)
    hook(engine, "step", guard, before=lambda blocks: 1 / 0, spend=True)
    assert [engine.step(blocks=numbers()), engine.step(numbers())] == [6, 6]
