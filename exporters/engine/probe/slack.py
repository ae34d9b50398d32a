"""Which blocks of a pool hold live tokens: a scan of the tables' ends, 5 to 10 times a second.

Only a table's ends can be less than full: the tail, where the next token goes, and for a
sliding window the head, where tokens leave. So the cost is by request, not by block.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

__all__ = ["PoolScan", "computed_tokens", "scan_pool"]

# Groups whose blocks are not slots of the sequence's own positions.
WHOLE_BLOCK_SPECS = ("MambaSpec", "CrossAttentionSpec")
ENDLESS_TOKENS = 1 << 40


class PoolScan(NamedTuple):
    """One pool at one moment, in block equivalents (see DESIGN section 3)."""

    live: float
    slack: float
    lookahead: float
    held: int


def computed_tokens(request: Any) -> int:
    """Return the tokens whose keys and values are there: those of a step in flight are not.

    Releases without ``num_in_flight_tokens`` have placeholders for what is in flight.
    """
    if hasattr(request, "num_in_flight_tokens"):
        in_flight = request.num_in_flight_tokens - getattr(request, "num_stale_output_tokens", 0)
    else:
        in_flight = getattr(request, "num_output_placeholders", 0)
    return max(0, int(request.num_computed_tokens) - int(in_flight))


def scan_pool(
    managers: Sequence[Any],
    running: Sequence[Any],
    deferred: Iterable[Sequence[Any]],
    referenced: int,
    extra_references: int,
    lookahead_tokens: int,
) -> PoolScan:
    """Split a pool's referenced blocks into live, slack and held.

    Args:
        managers: the pool's ``SingleTypeKVCacheManager``s.
        running: requests of the running batch.
        deferred: block lists freed by their request and not yet by the pool.
        referenced: blocks somebody holds.
        extra_references: references beyond each block's first.
        lookahead_tokens: slots a request gets for speculative tokens.
    """
    computed = {request.request_id: computed_tokens(request) for request in running}
    running_tables = _RunningTables(lookahead_tokens)
    others: dict[int, tuple[int, int]] = {}  # block id -> holders that don't run, references
    other_references = 0
    for manager in managers:
        group = _Group.of(manager)
        for request_id, table in manager.req_to_blocks.items():
            tokens = computed.get(request_id)
            if tokens is None:
                other_references += _count(table, others)
            elif table:
                running_tables.add(group, table, tokens)
    for table in deferred:
        other_references += _count(table, others)

    if running_tables.references + other_references == referenced + extra_references:
        held = sum(holders >= references for holders, references in others.values())
    else:
        held = referenced - _distinct(managers, computed)  # a connector pins blocks: look at all
    slack = running_tables.slack
    return PoolScan(referenced - held - slack, slack, running_tables.lookahead, held)


class _Group(NamedTuple):
    """What one KV cache group's tables have in common."""

    size: int
    whole: bool
    skipped: Callable[[int], int] | None
    """Returns the leading tokens that no later token attends to; None where there are none."""

    @classmethod
    def of(cls, manager: Any) -> "_Group":
        skipped = getattr(manager, "get_num_skipped_tokens", None)
        if skipped is not None and not skipped(ENDLESS_TOKENS):
            skipped = None  # what skips nothing of so many never does: full attention
        whole = type(manager.kv_cache_spec).__name__ in WHOLE_BLOCK_SPECS
        return cls(manager.block_size, whole, skipped)


class _RunningTables:
    """Sums what the block tables of running requests leave empty."""

    def __init__(self, lookahead_tokens: int) -> None:
        self.references = 0
        self.lookahead = 0.0
        self._lookahead_tokens = lookahead_tokens
        self._own_slack = 0.0
        self._shared: dict[int, tuple[float, int, int]] = {}  # id -> best fill, holders, references

    def add(self, group: _Group, table: Sequence[Any], tokens: int) -> None:
        """Add a request's table of one group."""
        if group.whole:
            self.references += sum(not block.is_null for block in table)
            return
        size = group.size
        skipped = max(0, group.skipped(tokens)) if group.skipped is not None else 0
        tail = tokens // size
        if not skipped and len(table) == tail + 1 and table[tail].ref_cnt == 1:
            # Nearly all tables, hundreds a scan: one block of its own that isn't full.
            empty = 1 - (tokens - tail * size) / size
            self.references += len(table)
            self._own_slack += empty
            if self._lookahead_tokens:
                self.lookahead += min(empty, self._lookahead_tokens / size)
            return
        first, ends = _ends(table, size, tokens, skipped)
        self.references += len(table) - first
        empty = 0.0
        for block, fill in ends:
            if block.ref_cnt > 1:
                best, holders, _ = self._shared.get(block.block_id, (0.0, 0, 0))
                self._shared[block.block_id] = (max(best, fill), holders + 1, block.ref_cnt)
            else:
                empty += 1 - fill
        self._own_slack += empty
        self.lookahead += min(empty, self._lookahead_tokens / size)

    @property
    def slack(self) -> float:
        """S. A holder of a shared block for which the block is no end has it full."""
        shared = self._shared.values()
        return self._own_slack + sum(
            1 - best for best, holders, references in shared if holders >= references
        )


def _ends(
    table: Sequence[Any], size: int, tokens: int, skipped: int
) -> tuple[int, list[tuple[Any, float]]]:
    """Return the index of the first block still held, and (block, fill) of those not full."""
    tail = tokens // size
    head = skipped // size
    first = head_end = 0
    if skipped:
        # The pool takes back what left the window at the next allocation: until then it is held.
        first = min(head, len(table))
        while first and not table[first - 1].is_null:
            first -= 1
        head_end = min(head + 1, tail, len(table))
    ends = []
    for index in (*range(first, head_end), *range(tail, len(table))):
        block = table[index]
        if not block.is_null:
            start = index * size
            kept = min(tokens, start + size) - max(skipped, start)
            ends.append((block, max(0, kept) / size))
    return first, ends


def _count(table: Iterable[Any], seen: dict[int, tuple[int, int]]) -> int:
    """Add a table's references to ``seen``; return how many there are."""
    count = 0
    for block in table:
        if not block.is_null:
            holders, _ = seen.get(block.block_id, (0, 0))
            seen[block.block_id] = (holders + 1, block.ref_cnt)
            count += 1
    return count


def _distinct(managers: Sequence[Any], running: Iterable[str]) -> int:
    """Count the distinct blocks of running requests, one by one."""
    ids: set[int] = set()
    for request_id in running:
        for manager in managers:
            table = manager.req_to_blocks.get(request_id, ())
            ids.update(block.block_id for block in table if not block.is_null)
    return len(ids)
