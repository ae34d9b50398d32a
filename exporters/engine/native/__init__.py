"""Engines without the probe: what vLLM's own /metrics page says, and no more than that."""
