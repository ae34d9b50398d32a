"""Label sets that several subjects share."""

__all__ = ["ENGINE", "POOL"]

ENGINE = ("engine", "model", "dp_rank")
POOL = (*ENGINE, "pool")
