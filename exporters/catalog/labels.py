"""Label sets that several subjects share."""

__all__ = ["ENGINE", "NATIVE", "POOL"]

ENGINE = ("engine", "model", "dp_rank")
POOL = (*ENGINE, "pool")
NATIVE = ("source",)
"""``source="native"`` on what vLLM's own page says; the probe's series have no such label."""
