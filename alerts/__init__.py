"""Recording and alert rules, generated from the metric catalog."""
