"""What the controller believes of each engine now: what was observed, plus the ledger.

Missing or old signals make it careful, never blind. The fallbacks:

| missing | then |
|---|---|
| no sample, or one older than ``STALE_S`` | room is unknown: policies neither reward nor punish |
| no KV scan yet | the same |
| block sizes of a pool | ``FALLBACK_BLOCK_SIZE_TOKENS`` |
| the adapter table (no worker record, or stale) | an adapter in flight there counts as warm |
| everything | in-flight requests by the ledger, which is always known |
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vramscope.controller.ledger import Ledger
from vramscope.exporters.signals.kv import usable_blocks
from vramscope.exporters.signals.kv_samples import KvSample
from vramscope.exporters.signals.samples import EngineSample, EngineState

__all__ = ["EngineBelief", "Observation", "PoolBelief", "believe"]

STALE_S = 2.0
"""Age past which an observation says nothing of room any more. A step of long prefills takes
up to a second or so, during which nothing newer exists; the ledger covers that much."""

FALLBACK_BLOCK_SIZE_TOKENS = 16
"""vLLM's block size on GPUs where none is configured."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The samples of one engine (one a data-parallel rank) and when they were read.

    Attributes:
        samples: at least one.
        read_at_s: moment of the read, on the same clock as the ledger's.
    """

    samples: tuple[EngineSample, ...]
    read_at_s: float


@dataclass(frozen=True, slots=True)
class PoolBelief:
    """One block pool of an engine.

    Attributes:
        usable_blocks: blocks that a new request may take now; negative when more was
            dispatched since the observation than there was room for.
        block_sizes_tokens: token slots of a block, by KV cache group.
    """

    usable_blocks: int
    block_sizes_tokens: tuple[int, ...]

    def blocks(self, tokens: int) -> int:
        """Return the blocks that ``tokens`` positions take: whole ones, in each group.

        A sliding window needs fewer; not counting on that is the careful side.
        """
        return sum(math.ceil(tokens / block_size) for block_size in self.block_sizes_tokens)

    def fits(self, tokens: int) -> bool:
        """Whether a request of that many positions fits now."""
        return self.blocks(tokens) <= self.usable_blocks


@dataclass(frozen=True, slots=True)
class EngineBelief:
    """One engine, as the policies see it.

    Attributes:
        engine: its name.
        in_flight: requests dispatched there and not finished.
        pools: room by block pool; None when unknown.
        tiers: tier by adapter as the engine reported it (absent: on disk); None without a
            report.
        adapters_in_flight: adapters of the requests dispatched there and not finished.
        hung: busy without a step for too long.
        age_s: age of the observation; None without one.
    """

    engine: str
    in_flight: int = 0
    pools: tuple[PoolBelief, ...] | None = None
    tiers: Mapping[str, str] | None = None
    adapters_in_flight: frozenset[str] = field(default_factory=frozenset)
    hung: bool = False
    age_s: float | None = None

    def fits(self, tokens: int) -> bool | None:
        """Whether a request of that many positions fits now; None when room is unknown."""
        return None if self.pools is None else all(pool.fits(tokens) for pool in self.pools)

    def warmth(self, adapter: str) -> str:
        """Return where the engine reported an adapter: gpu, cpu, disk or unreported."""
        return "unreported" if self.tiers is None else self.tiers.get(adapter, "disk")

    def is_warm(self, adapter: str) -> bool:
        """Whether an adapter is in GPU memory, as reported, else as far as the ledger tells."""
        if self.tiers is None:
            return adapter in self.adapters_in_flight
        return self.tiers.get(adapter) == "gpu"


def believe(
    engine: str, observation: Observation | None, ledger: Ledger, now_s: float
) -> EngineBelief:
    """Join an engine's last observation with what was dispatched since. Pure.

    Args:
        engine: its name.
        observation: what was last read of it, or None.
        ledger: all dispatches in flight.
        now_s: on the clock of the ledger and the observation.
    """
    in_flight = ledger.in_flight(engine)
    adapters = ledger.adapters(engine)
    if observation is None or not observation.samples:
        return EngineBelief(engine, in_flight, adapters_in_flight=adapters)
    age_s = now_s - observation.read_at_s + max(one.age_s for one in observation.samples)
    fresh = now_s - observation.read_at_s <= STALE_S
    return EngineBelief(
        engine,
        in_flight,
        pools=_roomiest(engine, observation, ledger, now_s) if fresh else None,
        tiers=_tiers(observation.samples) if fresh else None,
        adapters_in_flight=adapters,
        hung=any(one.state is EngineState.HUNG for one in observation.samples),
        age_s=age_s,
    )


def _roomiest(
    engine: str, observation: Observation, ledger: Ledger, now_s: float
) -> tuple[PoolBelief, ...] | None:
    """Return the pools of the rank with most room, where vLLM's own balancer sends next.

    What was dispatched since is charged to the ranks in equal parts.
    """
    ranks = len(observation.samples)
    known = [
        tuple(_pool(engine, kv, ranks, observation.read_at_s, ledger) for kv in sample.kv)
        for sample in observation.samples
        if sample.kv and _scan_age_s(sample, observation, now_s) <= STALE_S
    ]
    return max(known, key=lambda pools: min(one.usable_blocks for one in pools), default=None)


def _scan_age_s(sample: EngineSample, observation: Observation, now_s: float) -> float:
    return now_s - observation.read_at_s + max(kv.age_s for kv in sample.kv)


def _pool(engine: str, kv: KvSample, ranks: int, read_at_s: float, ledger: Ledger) -> PoolBelief:
    before = PoolBelief(usable_blocks(kv), kv.block_sizes or (FALLBACK_BLOCK_SIZE_TOKENS,))
    since = ledger.since(engine, read_at_s - kv.age_s)
    charged = math.ceil(sum(before.blocks(entry.tokens) for entry in since) / ranks)
    return PoolBelief(before.usable_blocks - charged, before.block_sizes_tokens)


def _tiers(samples: Sequence[EngineSample]) -> Mapping[str, str] | None:
    """Return each adapter's tier; with several ranks, the coldest: any may get the request."""
    tables = [sample.lora.resident for sample in samples if sample.lora is not None]
    if not tables:
        return None
    if len(tables) == 1:
        return tables[0]
    coldest = ("disk", "cpu", "gpu")
    names = {name for table in tables for name in table}
    return {
        name: min((table.get(name, "disk") for table in tables), key=coldest.index)
        for name in names
    }
