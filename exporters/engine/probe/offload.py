"""KV cache outside the GPU: what the scheduler's connector is asked, finds, stores and refuses.

Present only where a connector is configured. Any connector gives lookups and hits; vLLM's own
offloading ones also give transfers, by the statistics that pass through the scheduler, and the
state of their tier, by its manager.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from vramscope.exporters.engine.probe.hooks import Guard, hook

__all__ = ["HIT_TIERS", "SCAN_FIELDS", "Offload"]

HIT_TIERS = ("host", "disk", "p2p")
"""Where vLLM can say that a token was found; the rest of the hits is of a tier it does not name."""
UNKNOWN = -1.0
"""A value that this connector does not have."""

# vLLM's name of a statistic, and ours; 0.24 and later.
COUNTED = {
    "vllm:kv_offload_store_bytes": "store_bytes",
    "vllm:kv_offload_load_bytes": "load_bytes",
    "vllm:kv_offload_store_time": "store_seconds",
    "vllm:kv_offload_load_time": "load_seconds",
}
# 0.16 to 0.23: a list of transfers by direction.
LISTED = {"GPU_to_CPU": "store", "CPU_to_GPU": "load"}

TRANSFERS = tuple(COUNTED.values())
TIER = ("blocks", "cached", "pinned", "stored", "loaded", "evicted", "refused")
POOL_SIZES = (
    ("_num_chunks", "_num_allocated_chunks", "_num_evictable_cache_chunks"),
    ("_num_blocks", "_num_allocated_blocks", "_num_evictable_cache_blocks"),  # 0.24 and later
)
SCAN_FIELDS = tuple(
    f"offload_{name}"
    for name in (
        *("queried_tokens", "hit_tokens"),
        *(f"hit_tokens_{tier}" for tier in HIT_TIERS),
        *TRANSFERS,
        *(f"tier_{name}" for name in TIER),
    )
)


class Offload:
    """Attached to one scheduler's connector.

    Args:
        connector: the scheduler's half.
        guard: runs the hooks.
    """

    def __init__(self, connector: Any, guard: Guard) -> None:
        self._asked: dict[str, int] = {}
        self._queried_tokens = self._hit_tokens = 0
        self._hit_tokens_of = dict.fromkeys(HIT_TIERS, 0)
        self._transfers = dict.fromkeys(TRANSFERS, 0.0)
        self._lookups = hook(
            connector, "get_num_new_matched_tokens", guard, after=self._after_lookup
        ) and hook(connector, "update_state_after_alloc", guard, before=self._before_admission)
        # Of later releases: without it the tier of a hit is not known.
        hook(connector, "get_external_cache_hit_sources", guard, after=self._after_sources)
        stats = hook(connector, "get_kv_connector_stats", guard, after=self._after_stats)
        # Every connector has the method; of one that never says a number, 0 would be made up.
        self._counted = stats and any(map(_keeps_statistics, _all(connector)))
        self._tier = next(filter(None, (_Tier.of(one, guard) for one in _all(connector))), None)

    @property
    def scan_fields(self) -> tuple[str, ...]:
        """Names of what ``scan`` returns."""
        return SCAN_FIELDS

    def capabilities(self) -> dict[str, bool]:
        """Return what this release and this connector let the part see."""
        return {
            "offload": self._lookups,
            "offload_transfers": self._counted,
            "offload_tier": self._tier is not None,
        }

    def scan(self, now_s: float) -> list[float]:
        """Return the values of ``SCAN_FIELDS``."""
        del now_s
        return [
            self._queried_tokens,
            self._hit_tokens,
            *self._hit_tokens_of.values(),
            *self._transfers.values(),
            *(self._tier.scan() if self._tier is not None else (UNKNOWN,) * len(TIER)),
        ]

    def computed(self, output: Any) -> None:
        """Take what the workers say with a step's output."""
        said = getattr(output, "kv_connector_output", None)
        if said is not None:
            self._take(getattr(said, "kv_connector_stats", None))

    def leaving(self, request_id: str) -> None:
        """Forget a request that was looked up and never admitted."""
        self._asked.pop(request_id, None)

    # Hooks. A request is looked up at each attempt to admit it; admission is what counts.

    def _after_lookup(self, found: Any, request: Any, computed_tokens: int, *_: Any) -> None:
        if request.num_preemptions == 0 and found[0] is not None:
            self._asked[request.request_id] = request.num_tokens - computed_tokens

    def _before_admission(self, request: Any, _: Any, external_tokens: int, *__: Any) -> None:
        # Called again, without a lookup, once an asynchronous load is there.
        asked = self._asked.pop(request.request_id, None)
        if asked is not None:
            self._queried_tokens += asked
            self._hit_tokens += external_tokens

    def _after_sources(self, sources: Any, request: Any, *_: Any, **__: Any) -> None:
        del request
        for source, tokens in sources.items():
            tier = getattr(source, "value", source)
            if tier in self._hit_tokens_of:
                self._hit_tokens_of[tier] += tokens

    def _after_stats(self, stats: Any, *_: Any) -> None:
        self._take(stats)

    def _take(self, stats: Any) -> None:
        """Add up the transfers of one payload; a connector of connectors has one for each."""
        data = getattr(stats, "data", None)
        if not data:
            return
        if "types" in data and "data" in data:
            values = data["data"]
            for name, ours in COUNTED.items():
                if name in values:
                    self._transfers[ours] += sum(values[name].values())
            return
        for name, value in data.items():
            if name in LISTED:
                direction = LISTED[name]
                for transfer in value:
                    self._transfers[f"{direction}_bytes"] += _of(transfer, "op_size")
                    self._transfers[f"{direction}_seconds"] += _of(transfer, "op_time")
            elif hasattr(value, "data"):
                self._take(value)


class _Tier:
    """The first tier below the GPU, by vLLM's ``CPUOffloadingManager``, in its own blocks.

    A block of the tier ("chunk") holds one or more of the GPU's.
    """

    def __init__(self, pool: Any, sizes: tuple[str, ...], manager: Any, guard: Guard) -> None:
        self._pool = pool
        self._blocks, self._allocated, self._evictable = sizes
        self._stored = self._loaded = self._evicted = self._refused = 0
        hook(manager, "prepare_store", guard, after=self._after_store)
        hook(manager, "complete_load", guard, before=self._before_loaded, spend=True)
        hook(manager, "complete_store", guard, before=self._before_stored, spend=True)

    @classmethod
    def of(cls, connector: Any, guard: Guard) -> "_Tier | None":
        """Return the tier of a connector that has one of this kind."""
        manager = getattr(getattr(connector, "connector_scheduler", None), "manager", None)
        pool = getattr(manager, "primary_tier", manager)  # of several, the one next to the GPU
        for sizes in POOL_SIZES:
            if all(hasattr(pool, name) for name in ("_free_list", *sizes)):
                return cls(pool, sizes, manager, guard)
        return None

    def scan(self) -> list[float]:
        """Return what ``TIER`` names."""
        pool = self._pool
        used = getattr(pool, self._allocated) - len(pool._free_list)  # noqa: SLF001
        cached = getattr(pool, self._evictable)
        counted = (self._stored, self._loaded, self._evicted, self._refused)
        return [getattr(pool, self._blocks), cached, used - cached, *counted]

    def _after_store(self, prepared: Any, *_: Any, **__: Any) -> None:
        if prepared is None:
            self._refused += 1
        else:
            self._evicted += len(prepared.evicted_keys)

    def _before_stored(self, keys: Any, *args: Any, success: bool = True) -> None:
        if success and False not in args:
            self._stored += len(keys)

    def _before_loaded(self, keys: Any, *_: Any, **__: Any) -> None:
        self._loaded += len(keys)


def _all(connector: Any) -> Iterable[Any]:
    """Return a connector, and those it is made of."""
    return (connector, *getattr(connector, "_connectors", ()))


def _keeps_statistics(connector: Any) -> bool:
    """Whether a connector is vLLM's own offloading one, or made from it."""
    return any(kind.__name__ == "OffloadingConnector" for kind in type(connector).__mro__)


def _of(transfer: Any, name: str) -> float:
    return float(transfer[name] if isinstance(transfer, Mapping) else getattr(transfer, name))
