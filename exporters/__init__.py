"""Sources, signals and exposition: what VRAM is used for, as numbers."""
