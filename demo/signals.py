"""One engine at one moment, out of the exporter's ``/signals`` document."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

__all__ = ["EngineView", "fetch_engines", "view"]

TIERS = ("gpu", "cpu", "disk")


@dataclass(frozen=True, slots=True)
class EngineView:
    """What the demo shows of an engine. Ratios are None where they have no meaning now.

    Attributes:
        engine: its name.
        state: idle, busy or hung.
        running: requests in the batch.
        waiting: requests queued.
        pool: blocks of the pool by what they hold, over the pool; with ``reserved``, a part
            of the free ones. None until the first scan.
        fragmentation: the KV fragmentation index F.
        waste: S / (T + S).
        lora_requests: requests with an adapter by tier, since start.
        lora_loads: loads into GPU memory by the tier they came from, since start.
        preemptions: since start.
        lost_tokens: computed tokens thrown away by them.
        prefill_tokens: prefill tokens computed, since start.
        recomputed_tokens: of them, those computed before.
        generated_tokens: since start.
        cached_tokens: prompt tokens found in the prefix cache, since start.
        finished: requests that left, by how, since start.
    """

    engine: str
    state: str
    running: int
    waiting: int
    pool: Mapping[str, float] | None
    fragmentation: float | None
    waste: float | None
    lora_requests: Mapping[str, int]
    lora_loads: Mapping[str, int]
    preemptions: int
    lost_tokens: int
    prefill_tokens: int
    recomputed_tokens: int
    generated_tokens: int
    cached_tokens: int
    finished: Mapping[str, int]


def view(engine: Mapping[str, Any]) -> EngineView:
    """Return an entry of ``engines`` in the document as a view; of its first block pool."""
    kv = engine["kv"][0] if engine["kv"] else None
    lora = engine["lora"] or {"requests": {}, "loads": {}}
    return EngineView(
        engine=engine["engine"],
        state=engine["state"],
        running=engine["running"],
        waiting=engine["waiting"],
        pool=kv and {part: kv[part] / kv["blocks"] for part in PARTS},
        fragmentation=kv and kv["signals"]["fragmentation"],
        waste=kv and kv["signals"]["waste"],
        lora_requests={tier: lora["requests"].get(tier, 0) for tier in TIERS},
        lora_loads={tier: lora["loads"].get(tier, 0) for tier in TIERS[1:]},
        preemptions=sum(engine["preemptions"].values()),
        lost_tokens=engine["preempted_tokens"],
        prefill_tokens=engine["prefill_tokens"],
        recomputed_tokens=engine["recomputed_tokens"],
        generated_tokens=engine["generated_tokens"],
        cached_tokens=engine["cached_tokens"],
        finished=engine["finished"],
    )


PARTS = ("live", "slack", "held", "evictable", "clean", "reserved")


async def fetch_engines(session: aiohttp.ClientSession, exporter_url: str) -> list[EngineView]:
    """Return the engines that the exporter at ``exporter_url`` sees, by name.

    Raises:
        aiohttp.ClientError: it does not answer.
    """
    async with session.get(f"{exporter_url}/signals") as response:
        response.raise_for_status()
        document = await response.json()
    return sorted(map(view, document["engines"]), key=lambda engine: engine.engine)
