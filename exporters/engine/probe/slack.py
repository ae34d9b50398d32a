"""Which blocks of a pool hold live tokens: a scan of the tables' ends, 5 to 10 times a second.

Only a table's ends can be less than full: the tail, where the next token goes, and for a
sliding window the head, where tokens leave. So the cost is by request, not by block.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = [
    "LENGTH_BOUNDS",
    "PoolScan",
    "computed_by_request",
    "computed_tokens",
    "length_class",
    "scan_pool",
]

LENGTH_BOUNDS = (128, 512, 2048, 8192, 32768)
"""Upper bounds of the classes of computed tokens; the last class has none."""

# Groups whose blocks are not slots of the sequence's own positions.
WHOLE_BLOCK_SPECS = ("MambaSpec", "CrossAttentionSpec")
ENDLESS_TOKENS = 1 << 40


class PoolScan(NamedTuple):
    """One pool at one moment, in block equivalents (see DESIGN section 3).

    ``slack_by_length`` sums to ``slack``. ``entries_by_length`` counts the block table entries of
    running requests, ``entries_by_group`` those of all: a shared block once a holder.
    """

    live: float
    slack: float
    lookahead: float
    held: int
    slack_by_length: tuple[float, ...]
    entries_by_length: tuple[int, ...]
    entries_by_group: tuple[int, ...]


def computed_tokens(request: Any) -> int:
    """Return the tokens whose keys and values are there: those of a step in flight are not.

    Releases without ``num_in_flight_tokens`` have placeholders for what is in flight.
    """
    if hasattr(request, "num_in_flight_tokens"):
        in_flight = request.num_in_flight_tokens - getattr(request, "num_stale_output_tokens", 0)
    else:
        in_flight = getattr(request, "num_output_placeholders", 0)
    return max(0, int(request.num_computed_tokens) - int(in_flight))


def computed_by_request(requests: Sequence[Any]) -> dict[str, int]:
    """Return ``computed_tokens`` of each request by its id; quicker, for a batch of hundreds."""
    if not all(hasattr(one, "num_stale_output_tokens") for one in requests[:1]):
        return {one.request_id: computed_tokens(one) for one in requests}
    computed = {
        one.request_id: one.num_computed_tokens
        - one.num_in_flight_tokens
        + one.num_stale_output_tokens
        for one in requests
    }
    if min(computed.values(), default=0) < 0:
        computed = {request_id: max(0, tokens) for request_id, tokens in computed.items()}
    return computed


def length_class(tokens: int) -> int:
    """Return the index of the first of ``LENGTH_BOUNDS`` that is not below, or past the last.

    >>> length_class(128), length_class(129), length_class(10**6)
    (0, 1, 5)
    """
    return bisect_left(LENGTH_BOUNDS, tokens)


def scan_pool(
    managers: Sequence[Any],
    computed: Mapping[str, int],
    deferred: Iterable[Sequence[Any]],
    referenced: int,
    extra_references: int,
    lookahead_tokens: int,
) -> PoolScan:
    """Split a pool's referenced blocks into live, slack and held.

    Args:
        managers: the pool's ``SingleTypeKVCacheManager``s.
        computed: ``computed_tokens`` of each running request.
        deferred: block lists freed by their request and not yet by the pool.
        referenced: blocks somebody holds.
        extra_references: references beyond each block's first.
        lookahead_tokens: slots a request gets for speculative tokens.
    """
    running = _RunningTables(lookahead_tokens)
    others: dict[int, tuple[int, int]] = {}  # block id -> holders that don't run, references
    other_references = 0
    by_group = []
    for manager in managers:
        group = _Group.of(manager)
        before = running.references + other_references
        for request_id, table in manager.req_to_blocks.items():
            tokens = computed.get(request_id)
            if tokens is None:
                other_references += _count(table, others)
            elif table:
                running.add(group, table, tokens)
        by_group.append(running.references + other_references - before)
    for table in deferred:
        other_references += _count(table, others)

    if running.references + other_references == referenced + extra_references:
        held = sum(holders >= references for holders, references in others.values())
        slack_by_length = running.slack_by_length(others)
    else:  # a connector pins blocks: look at all
        entries = _entries(managers, computed)
        held = referenced - len(entries)
        slack_by_length = running.slack_by_length(others, entries)
    slack = sum(slack_by_length)
    return PoolScan(
        live=referenced - held - slack,
        slack=slack,
        lookahead=running.lookahead,
        held=held,
        slack_by_length=tuple(slack_by_length),
        entries_by_length=tuple(running.entries),
        entries_by_group=tuple(by_group),
    )


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
    """Sums what the block tables of running requests leave empty, by class of length."""

    def __init__(self, lookahead_tokens: int) -> None:
        classes = len(LENGTH_BOUNDS) + 1
        self.entries = [0] * classes
        self.lookahead = 0.0
        self._lookahead_tokens = lookahead_tokens
        self._own_slack = [0.0] * classes
        # id -> best fill, class of who has it so full, holders, references
        self._shared: dict[int, tuple[float, int, int, int]] = {}

    @property
    def references(self) -> int:
        """Block table entries so far."""
        return sum(self.entries)

    def add(self, group: _Group, table: Sequence[Any], tokens: int) -> None:
        """Add a request's table of one group."""
        length = bisect_left(LENGTH_BOUNDS, tokens)
        if group.whole:
            self.entries[length] += sum(not block.is_null for block in table)
            return
        size = group.size
        skipped = max(0, group.skipped(tokens)) if group.skipped is not None else 0
        tail = tokens // size
        if not skipped and len(table) == tail + 1 and table[tail].ref_cnt == 1:
            # Nearly all tables, hundreds a scan: one block of its own that isn't full.
            empty = 1 - (tokens - tail * size) / size
            self.entries[length] += len(table)
            self._own_slack[length] += empty
            if self._lookahead_tokens:
                self.lookahead += min(empty, self._lookahead_tokens / size)
            return
        first, ends = _ends(table, size, tokens, skipped)
        self.entries[length] += len(table) - first
        empty = 0.0
        for block, fill in ends:
            if block.ref_cnt > 1:
                best, of, holders, _ = self._shared.get(block.block_id, (-1.0, length, 0, 0))
                if fill > best:
                    best, of = fill, length
                self._shared[block.block_id] = (best, of, holders + 1, block.ref_cnt)
            else:
                empty += 1 - fill
        self._own_slack[length] += empty
        self.lookahead += min(empty, self._lookahead_tokens / size)

    def slack_by_length(
        self, others: Mapping[int, tuple[int, int]], entries: Mapping[int, int] | None = None
    ) -> list[float]:
        """Return S in parts: a shared block counts where it is fullest.

        A running holder of a shared block for which the block is no end has it full.

        Args:
            others: by block, how many hold it that don't run.
            entries: by block, how many hold it that run; None where nobody else holds blocks.
        """
        slack = self._own_slack.copy()
        for number, (best, of, holders, references) in self._shared.items():
            if entries is None:
                running = references - others.get(number, (0, 0))[0]
            else:
                running = entries[number]
            if holders >= running:
                slack[of] += 1 - best
        return slack


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


def _entries(managers: Sequence[Any], running: Iterable[str]) -> Counter[int]:
    """Count in how many tables of running requests each block is, one by one."""
    return Counter(
        block.block_id
        for request_id in running
        for manager in managers
        for block in manager.req_to_blocks.get(request_id, ())
        if not block.is_null
    )
