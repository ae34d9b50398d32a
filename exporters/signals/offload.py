"""KV cache outside the GPU: how often it helps and how near a tier is to refusing. Pure."""

__all__ = ["offload_hit_ratio"]


def offload_hit_ratio(hit_tokens: float, queried_tokens: float) -> float | None:
    """Return the share of the tokens looked up outside the GPU that were found there.

    Args:
        hit_tokens: found and taken.
        queried_tokens: prompt tokens not in GPU memory, at first schedule.

    >>> offload_hit_ratio(hit_tokens=160, queried_tokens=640)
    0.25
    """
    return hit_tokens / queried_tokens if queried_tokens else None
