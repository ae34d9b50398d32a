"""Writes the engine's page table beside its record when a reader asks for it.

Nothing happens until one does. Then the engine's loop waits for one dump, about 0.2 us a block,
and no more than ``MOST_SHARE`` of its time goes into dumps however often readers ask.
"""

import time
from array import array
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from vramscope.exporters.engine import dump_file
from vramscope.exporters.engine.probe.requests import external_id
from vramscope.exporters.engine.probe.slack import WHOLE_BLOCK_SPECS, computed_tokens
from vramscope.exporters.engine.record import request_hash
from vramscope.exporters.engine.writer import RecordWriter

__all__ = ["PageTableDump", "page_table"]

LOOK_PERIOD_S = 1.0
MOST_SHARE = 0.01
MOST_BLOCKS = 1 << 20
MOST_ENTRIES = 1 << 20
"""Blocks in all block tables together, shared ones as often as they are shared."""

_block_id = attrgetter("block_id")
_ref_cnt = attrgetter("ref_cnt")
_block_hash = attrgetter("block_hash")


class PageTableDump:
    """Looks whether a reader asks, at most once a second, and gives it the page table.

    An engine without work makes no step, so it doesn't look either; it does in the step that
    leaves no work. The first error switches this off, and this alone.

    Attributes:
        enabled: dumps can be taken here.
    """

    def __init__(
        self,
        scheduler: Any,
        pools: Sequence[Any],
        managers: Sequence[Any],
        randomized_ids: bool,
        writer: RecordWriter,
        on_error: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.enabled = True
        self._scheduler = scheduler
        self._pools = pools
        self._managers = managers
        self._writer = writer
        self._on_error = on_error
        self._clock = clock
        self._randomized_ids = randomized_ids
        self._next_look_s = self._rests_until_s = 0.0

    def after_scan(self, now_s: float, busy: bool, scan: Sequence[float]) -> None:
        """Write a dump if one is asked for and it is time.

        Args:
            now_s: the moment of the scan, by the host's monotonic clock.
            busy: whether there is work left, so that steps follow.
            scan: what it said of this moment, in the order of the record's ``scan_fields``.
        """
        if not self.enabled or now_s < (self._next_look_s if busy else self._rests_until_s):
            return
        self._next_look_s = now_s + LOOK_PERIOD_S
        try:
            if self._writer.is_asked():
                self._write(now_s, scan)
        except Exception as error:  # noqa: BLE001  # the record goes on without
            self.enabled = False
            self._on_error(f"page table: {type(error).__name__}: {error}")

    def _write(self, now_s: float, scan: Sequence[float]) -> None:
        started_s = self._clock()
        header, arrays = page_table(
            self._scheduler, self._pools, self._managers, self._randomized_ids
        )
        header |= {
            "time_s": now_s,
            "time_unix_s": time.time(),
            "scan": dict(zip(self._writer.scan_fields, scan, strict=True)),
        }
        header["took_s"] = self._clock() - started_s
        self._writer.write_dump(dump_file.encode(header, arrays))
        ended_s = self._clock()
        self._rests_until_s = ended_s + (ended_s - started_s) / MOST_SHARE
        self._next_look_s = max(self._next_look_s, self._rests_until_s)


def page_table(
    scheduler: Any, pools: Sequence[Any], managers: Sequence[Any], randomized_ids: bool
) -> tuple[dict[str, Any], list["array[int]"]]:
    """Copy what the block manager holds, as compactly as it can be copied.

    Args:
        scheduler: vLLM's own.
        pools: its block pools, in the order of the record's header.
        managers: its ``SingleTypeKVCacheManager``s, in the order of the header's ``groups``.
        randomized_ids: vLLM appends characters of its own to request ids.

    Returns:
        The header: ``requests`` that hold blocks; ``tables``, each with its group, request,
        length, and the tokens that left its window; by pool the number of its ``null_blocks``;
        by group whether its blocks count as whole; or why it was ``refused``. And the arrays:
        for each pool the reference count and the first twin of each block (``UNHASHED`` without
        a prefix hash), then the block numbers of all tables in one.
    """
    entries = sum(len(table) for manager in managers for table in manager.req_to_blocks.values())
    blocks = sum(len(pool.blocks) for pool in pools)
    if blocks > MOST_BLOCKS or entries > MOST_ENTRIES:
        wanted = f"at most {MOST_BLOCKS} and {MOST_ENTRIES}, for the engine waits meanwhile"
        return {"refused": f"{blocks} blocks and {entries} table entries: {wanted}"}, []
    arrays = [numbers for pool in pools for numbers in _pool(pool)]
    running = {request.request_id for request in scheduler.running}
    places: dict[str, int] = {}
    requests: list[dict[str, Any]] = []
    tables: list[tuple[int, int, int, int]] = []
    ids = array("I")
    for group, manager in enumerate(managers):
        skipped = getattr(manager, "get_num_skipped_tokens", None)
        for request_id, table in manager.req_to_blocks.items():
            if not table:
                continue
            place = places.setdefault(request_id, len(requests))
            if place == len(requests):
                request = scheduler.requests.get(request_id)
                name = request_hash(external_id(request_id, randomized_ids))
                requests.append({"hash": name, **_request(request, request_id in running)})
            computed = requests[place].get("computed_tokens", 0)
            gone = max(0, skipped(computed)) if skipped is not None else 0
            tables.append((group, place, len(table), gone))
            ids.extend(map(_block_id, table))
    header = {
        "null_blocks": [pool.null_block.block_id for pool in pools],
        "whole": [type(m.kv_cache_spec).__name__ in WHOLE_BLOCK_SPECS for m in managers],
        "requests": requests,
        "tables": tables,
    }
    return header, [*arrays, ids]


def _pool(pool: Any) -> tuple["array[int]", "array[int]"]:
    """Return each block's reference count, and the first block of the same content."""
    references = array("I", map(_ref_cnt, pool.blocks))
    first: dict[Any, int] = {None: dump_file.UNHASHED}
    # One pass in C: the first block to bring a hash gives it its number.
    hashes = map(_block_hash, pool.blocks)
    return references, array("I", map(first.setdefault, hashes, range(len(pool.blocks))))


def _request(request: Any, running: bool) -> dict[str, Any]:
    """Describe a holder; None is a request that left and whose blocks are not freed yet."""
    if request is None:
        return {"state": "finished"}
    lora = request.lora_request
    return {
        "state": "running" if running else request.status.name.lower(),
        "computed_tokens": computed_tokens(request),
        "prompt_tokens": int(request.num_prompt_tokens),
        "output_tokens": int(request.num_output_tokens),
        "adapter": str(lora.lora_name) if lora is not None else None,
    }
