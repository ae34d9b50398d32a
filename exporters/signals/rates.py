"""Shares of counters since the engine started. PromQL windows them from the counters themselves."""

from collections.abc import Mapping

__all__ = ["lora_hit_ratio", "preemptions_per_100", "recompute_tax"]


def lora_hit_ratio(requests: Mapping[str, int]) -> float | None:
    """Return the share of requests with an adapter that found it in GPU memory.

    Args:
        requests: by tier (``gpu``, ``cpu``, ``disk``), once each at first schedule.

    >>> lora_hit_ratio({"gpu": 6, "cpu": 1, "disk": 1})
    0.75
    """
    total = sum(requests.values())
    return requests.get("gpu", 0) / total if total else None


def preemptions_per_100(preemptions: int, first_schedules: int) -> float | None:
    """Return preemptions per 100 requests scheduled for the first time.

    >>> preemptions_per_100(preemptions=3, first_schedules=60)
    5.0
    """
    return 100 * preemptions / first_schedules if first_schedules else None


def recompute_tax(recomputed_tokens: int, prefill_tokens: int) -> float | None:
    """Return the share of prefill work that had been done before.

    Args:
        recomputed_tokens: prefill tokens below the request's earlier high-water mark.
        prefill_tokens: all prefill tokens computed.

    Returns:
        ratio in [0, 1], or None before the first prefill.

    >>> recompute_tax(recomputed_tokens=50, prefill_tokens=400)
    0.125
    """
    return recomputed_tokens / prefill_tokens if prefill_tokens else None
