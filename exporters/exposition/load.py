"""An engine's steps and queue as metric families."""

from vramscope.exporters.catalog import load as catalog
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.signals.request_samples import LoadSample

__all__ = ["add_queue", "add_steps"]


def add_steps(families: Families, load: LoadSample, who: tuple[str, ...]) -> None:
    """Add what an engine's steps compute; ``who`` has the values of the engine's labels."""
    families.add_sample(catalog.STEP_SECONDS, load.step_s, *who)
    families.add(catalog.STEP_REQUESTS, load.requests, *who)
    families.add(catalog.BATCH_REQUESTS, load.batch_requests, *who)
    families.add(catalog.BATCH_TOKENS, load.batch_tokens, *who)


def add_queue(
    families: Families, load: LoadSample, who: tuple[str, ...], with_reasons: bool
) -> None:
    """Add what waits; ``with_reasons`` where the probe could tell them."""
    if with_reasons:
        for reason, count in load.waiting.items():
            families.add(catalog.WAITING_REQUESTS, count, *who, reason)
    families.add(catalog.OLDEST_WAIT, load.oldest_wait_s, *who)
    families.add_sample(catalog.QUEUE_SECONDS, load.queue_s, *who)
