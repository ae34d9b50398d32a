"""What the controller says of its picks, out of its own ``/metrics``."""

from collections import Counter

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from vramscope.exporters.catalog.controller import DECISIONS, LORA_PICKS

__all__ = ["fetch_picks", "picks_line"]


TIMEOUT_S = 5.0


async def fetch_picks(admin_url: str) -> str:
    """Return a line on the picks so far, or on why there is none."""
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"{admin_url}/metrics") as response,
        ):
            response.raise_for_status()
            return picks_line(await response.text())
    except (aiohttp.ClientError, TimeoutError) as error:
        return f"picks: the controller does not say: {type(error).__name__}"


def picks_line(page: str) -> str:
    """Return a line on what decided and how warm the picked engines were.

    Args:
        page: of the controller's metrics.
    """
    reasons: Counter[str] = Counter()
    warmth: Counter[str] = Counter()
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.name == DECISIONS.name:
                reasons[sample.labels["reason"]] += int(sample.value)
            elif sample.name == LORA_PICKS.name:
                warmth[sample.labels["warmth"]] += int(sample.value)
    decided = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common() if count)
    reported = warmth.total() - warmth["unreported"]
    warm = f"{warmth['gpu']} of {reported} adapter picks found the adapter warm" if reported else ""
    return f"picks: {decided or 'none'}" + (f"; {warm}" if warm else "")
