"""Wrapping the engine's methods so that telemetry can never be what breaks it."""

import contextlib
import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["Guard", "hook"]

Hook = Callable[..., Any]


class Guard:
    """Runs the probe's code. The first error switches the whole probe off, for good.

    A probe that half works would report numbers nobody can explain, so it is all or nothing:
    from then on each hook costs one attribute test.
    """

    def __init__(self, on_error: Callable[[str], None]) -> None:
        self.enabled = True
        self.error: str | None = None
        self._on_error = on_error

    def stop(self) -> None:
        """Run none of the probe's code from now on: its process is ending."""
        self.enabled = False

    def disable(self, where: str, error: BaseException) -> None:
        """Switch off and tell ``on_error`` once; what that raises is dropped."""
        if not self.enabled:
            return
        self.enabled = False
        self.error = f"{where}: {type(error).__name__}: {error}"
        with contextlib.suppress(Exception):  # the engine never dies of its telemetry
            self._on_error(self.error)


def hook(
    owner: Any,
    name: str,
    guard: Guard,
    before: Hook | None = None,
    after: Hook | None = None,
    spend: bool = False,
) -> bool:
    """Wrap ``owner.name``, an instance's method or a class's function.

    Args:
        owner: what to set the wrapper on.
        name: the method.
        guard: runs ``before`` and ``after``.
        before: called with the method's arguments.
        after: called with its result, then its arguments.
        spend: the hooks iterate an argument that may be an iterator: hand all a list instead.

    Returns:
        False when there is no such method: the caller switches one capability off.
    """
    original = getattr(owner, name, None)
    if original is None:
        return False

    names = None if spend else _plain_parameters(original)
    if names is None:
        hooked = _any_hooked(original, name, guard, before, after, spend)
    else:
        hooked = _plain_hooked(original, name, names, guard, before, after)
    hooked.__name__ = name
    hooked.__wrapped__ = original  # type: ignore[attr-defined]
    setattr(owner, name, hooked)
    return True


def _any_hooked(
    original: Hook,
    name: str,
    guard: Guard,
    before: Hook | None,
    after: Hook | None,
    spend: bool,
) -> Hook:
    """Return a wrapper that takes and passes on whatever it is called with."""

    def hooked(*args: Any, **kwargs: Any) -> Any:
        if spend:
            args = tuple(list(arg) if hasattr(arg, "__next__") else arg for arg in args)
            kwargs = {k: list(v) if hasattr(v, "__next__") else v for k, v in kwargs.items()}
        if before is not None and guard.enabled:
            try:
                before(*args, **kwargs)
            except Exception as error:  # noqa: BLE001  # the engine never dies of its telemetry
                guard.disable(name, error)
        result = original(*args, **kwargs)
        if after is not None and guard.enabled:
            try:
                after(result, *args, **kwargs)
            except Exception as error:  # noqa: BLE001  # the engine never dies of its telemetry
                guard.disable(name, error)
        return result

    return hooked


def _plain_parameters(method: Hook) -> list[inspect.Parameter] | None:
    """Return a method's parameters; None when some can't be passed by position."""
    try:
        parameters = list(inspect.signature(method).parameters.values())
    except (TypeError, ValueError):  # not Python, or it hides its signature
        return None
    plain = all(one.kind is one.POSITIONAL_OR_KEYWORD for one in parameters)
    return parameters if plain else None


def _plain_hooked(
    original: Hook,
    name: str,
    parameters: list[inspect.Parameter],
    guard: Guard,
    before: Hook | None,
    after: Hook | None,
) -> Hook:
    """Return a wrapper with the method's own parameters.

    Compiled for them, as dataclasses compile their constructors: a call that packs and unpacks
    its arguments three times takes 0.2 us more, and vLLM makes dozens a step.
    """
    passed = ", ".join(one.name for one in parameters)
    known: dict[str, Any] = {
        "_original": original,
        "_name": name,
        "_guard": guard,
        "_before": before,
        "_after": after,
    }
    declared = []
    for one in parameters:
        if one.default is one.empty:
            declared.append(one.name)
        else:
            known[f"_default_{one.name}"] = one.default
            declared.append(f"{one.name}=_default_{one.name}")
    source = [f"def hooked({', '.join(declared)}):"]
    if before is not None:
        source += _GUARDED.format(call=f"_before({passed})").splitlines()
    if after is None:
        source.append(f"    return _original({passed})")
    else:
        source.append(f"    _result = _original({passed})")
        source += _GUARDED.format(call=f"_after(_result, {passed})").splitlines()
        source.append("    return _result")
    code = compile("\n".join(source), f"<hook of {name}>", "exec")
    exec(code, known)  # noqa: S102  # of names that Python itself gave
    hooked: Hook = known["hooked"]
    return hooked


_GUARDED = """\
    if _guard.enabled:
        try:
            {call}
        except Exception as _error:
            _guard.disable(_name, _error)"""
