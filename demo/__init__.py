"""``make demo``: two real vLLM engines under pressure, seen live."""
