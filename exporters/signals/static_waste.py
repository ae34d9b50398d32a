"""What the cache would waste if each request had one contiguous range of it."""

from vramscope.exporters.signals.kv_samples import StaticWasteSample

__all__ = ["static_waste"]


def static_waste(sample: StaticWasteSample) -> dict[str, float | None]:
    """Return 1 - tokens / reserved of three contiguous allocators.

    ``max_model_len`` and ``power_of_two`` are of this moment. ``oracle`` reserves each
    request's final length, which nobody knows of one that runs: it is of the requests that have
    left since the engine started, over the time they ran.

    Returns:
        ratios in [0, 1); None where nothing is reserved.

    Source:
        Kwon et al., SOSP 2023, section 6.1: Orca (Max), (Pow2), (Oracle). There Pow2 rounds the
        output's final length up; here an allocator doubles, so that nothing need be known.

    >>> waste = static_waste(StaticWasteSample(
    ...     300, {"max_model_len": 1200, "power_of_two": 400}, 30.0, 40.0))
    >>> waste["max_model_len"], waste["power_of_two"], waste["oracle"]
    (0.75, 0.25, 0.25)
    """
    ratios = {
        allocator: _waste(sample.tokens, reserved)
        for allocator, reserved in sample.reserved.items()
    }
    return {**ratios, "oracle": _waste(sample.held_token_s, sample.oracle_token_s)}


def _waste(held: float, reserved: float) -> float | None:
    return max(0.0, 1 - held / reserved) if reserved else None
