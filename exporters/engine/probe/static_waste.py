"""What an allocator that reserves one contiguous range a request would waste here."""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from vramscope.exporters.engine.probe.pools import Pools
from vramscope.exporters.engine.probe.slack import computed_tokens

__all__ = ["StaticWaste", "power_of_two"]


class StaticWaste:
    """Tokens held and what contiguous allocators would have reserved for them.

    Of the moment for two allocators: one reserves the model's longest sequence, one doubles. The
    third knows each request's final length, which is known only when the request leaves: so it
    is summed over the time each request was seen running, at scans, and counted as it leaves.
    """

    scan_fields = (
        "static_tokens",
        "static_max_model_len",
        "static_power_of_two",
        "static_held_token_seconds",
        "static_oracle_token_seconds",
    )

    def __init__(self, scheduler: Any, pools: Pools) -> None:
        self._scheduler = scheduler
        self._pools = pools
        self._longest = int(getattr(scheduler, "max_model_len", 0))
        self._held: dict[str, tuple[float, float]] = {}  # token-seconds, seconds
        self._seen: Set[str] = frozenset()
        self._scan_time_s = 0.0
        self._held_token_s = self._oracle_token_s = 0.0

    def capabilities(self) -> dict[str, bool]:
        """Return whether the longest sequence is known."""
        return {"static_waste": hasattr(self._scheduler, "max_model_len")}

    def scan(self, now_s: float) -> Sequence[float]:
        """Return the values of ``scan_fields``, with the computed tokens of the pools' scan."""
        running = self._pools.computed
        passed_s, self._scan_time_s = now_s - self._scan_time_s, now_s
        held, seen = self._held, self._seen
        for request_id in running.keys() & seen:
            token_s, seconds = held.get(request_id, (0.0, 0.0))
            held[request_id] = (token_s + running[request_id] * passed_s, seconds + passed_s)
        self._seen = running.keys()
        tokens = [*running.values(), *self._others(running)]
        return (
            sum(tokens),
            len(tokens) * self._longest,
            sum(map(self._doubled, tokens)),
            self._held_token_s,
            self._oracle_token_s,
        )

    def _doubled(self, tokens: int) -> int:
        return min(power_of_two(tokens), self._longest)

    def _others(self, running: Mapping[str, int]) -> Iterator[int]:
        """Yield the computed tokens of each request that holds blocks and does not run."""
        requests = self._scheduler.requests
        for request_id, table in self._pools.managers[0].req_to_blocks.items():
            if request_id not in running and table and request_id in requests:
                yield computed_tokens(requests[request_id])

    def leaving(self, request: Any) -> None:
        """Count a request whose length is final."""
        token_s, seconds = self._held.pop(request.request_id, (0.0, 0.0))
        self._held_token_s += token_s
        self._oracle_token_s += seconds * request.num_tokens


def power_of_two(tokens: int) -> int:
    """Return the least power of two that is not below, 0 for none.

    >>> power_of_two(0), power_of_two(1), power_of_two(64), power_of_two(65)
    (0, 1, 64, 128)
    """
    return 1 << (tokens - 1).bit_length() if tokens > 0 else 0
