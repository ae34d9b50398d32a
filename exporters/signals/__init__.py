"""Frozen samples of one moment and the pure formulas over them. No clock, no I/O."""
