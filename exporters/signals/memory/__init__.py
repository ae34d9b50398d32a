"""Memory arithmetic: what a model's weights, KV cache and adapters take, from its config.json."""
