"""An engine's page table at one moment, as frozen values."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

__all__ = ["Block", "Group", "PageTable", "Pool", "Request", "State", "Table", "token_share"]


class State(StrEnum):
    """What a block is used for; the first is split in two by its fill."""

    LIVE = "live"
    """A running request holds it; what its tokens leave empty is slack."""
    HELD = "held"
    """Referenced by no running request: transferred, finished and not yet freed, pinned."""
    EVICTABLE = "evictable"
    """Unreferenced, and holds a cached prefix."""
    CLEAN = "clean"
    """Unreferenced, and holds nothing."""


class Block(NamedTuple):
    """One block.

    Attributes:
        number: its number in the pool, which is its place in memory.
        state: what it is used for.
        fill: share of its slots that holds live tokens, by its furthest running holder; 0
            unless it is live.
        references: how many hold it.
        twin: number of the first block of the same content, itself perhaps; None without a
            prefix hash.
        holders: the requests that hold it, by their index, each once.
    """

    number: int
    state: State
    fill: float
    references: int
    twin: int | None
    holders: tuple[int, ...]

    @property
    def is_duplicate(self) -> bool:
        """Whether a block before it holds the same."""
        return self.twin is not None and self.twin != self.number


class Group(NamedTuple):
    """A KV cache group: layers that share block tables.

    Attributes:
        pool: index of the pool its blocks are of.
        kind: vLLM's name of its specification.
        block_size: token slots of a block.
        whole: its blocks are full when held (mamba state, cross-attention).
    """

    pool: int
    kind: str
    block_size: int
    whole: bool


class Request(NamedTuple):
    """A request that holds blocks; None where vLLM no longer says.

    Attributes:
        name: hash of its external id, 16 hexadecimal digits.
        state: ``running``, ``finished`` (its blocks are not freed yet), or why it waits.
        computed_tokens: tokens whose keys and values are there.
        prompt_tokens: length of its prompt.
        output_tokens: tokens generated so far.
        adapter: name of its LoRA adapter; None without.
    """

    name: str
    state: str
    computed_tokens: int | None
    prompt_tokens: int | None
    output_tokens: int | None
    adapter: str | None

    @property
    def is_running(self) -> bool:
        """Whether its blocks count as live."""
        return self.state == "running"


class Table(NamedTuple):
    """The block table of one request in one group.

    Attributes:
        group: index of the group.
        request: index of the request.
        gone_tokens: leading tokens that have left the group's attention window.
        blocks: block numbers in the order of the request's tokens; None where the block has
            been given back because its tokens left the window.
    """

    group: int
    request: int
    gone_tokens: int
    blocks: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Pool:
    """One block pool.

    Attributes:
        index: among the engine's pools.
        blocks: its usable blocks by number (the null block is none).
        reserved: free blocks that a new request may not take.
    """

    index: int
    blocks: tuple[Block, ...]
    reserved: int


@dataclass(frozen=True, slots=True)
class PageTable:
    """All pools of one engine.

    Attributes:
        engine: its id, with its data-parallel rank where that is not 0.
        model: the name it is served under.
        vllm_version: of the engine.
        time_s: the moment, by the host's monotonic clock.
        time_unix_s: the same moment.
        took_s: how long the engine waited for the copy.
        pools: by index.
        groups: KV cache groups by index.
        requests: those that hold blocks, by index.
        tables: their block tables.
    """

    engine: str
    model: str
    vllm_version: str
    time_s: float
    time_unix_s: float
    took_s: float
    pools: tuple[Pool, ...]
    groups: tuple[Group, ...]
    requests: tuple[Request, ...]
    tables: tuple[Table, ...]


def token_share(place: int, block_size: int, computed_tokens: int, gone_tokens: int = 0) -> float:
    """Return the share of a block's slots whose tokens are computed and still attended to.

    Args:
        place: of the block in its request's table.
        block_size: token slots of a block.
        computed_tokens: tokens of the request whose keys and values are there.
        gone_tokens: leading tokens that left the attention window.

    >>> token_share(place=2, block_size=16, computed_tokens=36)
    0.25
    """
    start = place * block_size
    kept = min(computed_tokens, start + block_size) - max(gone_tokens, start)
    return max(0, kept) / block_size
