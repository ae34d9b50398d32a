"""Times the probe's own code inside vLLM's: each hooked method, less the method itself."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import wraps
from typing import Any

from vramscope.exporters.engine.probe import hooks

__all__ = ["HookTimer"]


class HookTimer:
    """Puts a clock outside and inside of each hook that is set from now on.

    Make it before the probe's modules are imported, which take ``hook`` from its module.

    Args:
        attach: False sets the clocks and no hook: what they show then is their own cost.

    Attributes:
        seconds: in hooks, by method.
        calls: of hooked methods.
    """

    def __init__(self, attach: bool) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()
        self._hook = hooks.hook
        self._attach = attach
        hooks.hook = self._timed_hook

    def take(self) -> tuple[dict[str, float], dict[str, int]]:
        """Return seconds and calls by method since the last time."""
        taken = dict(self.seconds), dict(self.calls)
        self.seconds.clear()
        self.calls.clear()
        return taken

    def _timed_hook(self, owner: Any, name: str, *args: Any, **kwargs: Any) -> bool:
        if not hasattr(owner, name):
            return False
        setattr(owner, name, self._clocked(getattr(owner, name), name, -1))
        if self._attach:
            self._hook(owner, name, *args, **kwargs)
        setattr(owner, name, self._clocked(getattr(owner, name), name, 1))
        return True

    def _clocked(self, method: Callable[..., Any], name: str, sign: int) -> Callable[..., Any]:
        seconds, calls, clock = self.seconds, self.calls, time.perf_counter

        @wraps(method)  # whose signature decides how it is hooked
        def clocked(*args: Any, **kwargs: Any) -> Any:
            started_s = clock()
            result = method(*args, **kwargs)
            seconds[name] += sign * (clock() - started_s)
            if sign > 0:
                calls[name] += 1
            return result

        return clocked
