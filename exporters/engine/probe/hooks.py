"""Wrapping the engine's methods so that telemetry can never be what breaks it."""

import contextlib
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

    hooked.__name__ = name
    hooked.__wrapped__ = original  # type: ignore[attr-defined]
    setattr(owner, name, hooked)
    return True
