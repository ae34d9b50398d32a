"""The page a Prometheus scrapes, and the endpoint that serves it."""
