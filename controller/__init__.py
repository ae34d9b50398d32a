"""Signals to belief to policy to actions: runs vLLM engines and routes requests to them."""
