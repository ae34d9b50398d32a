"""An engine's page table as a picture: which block holds what, for whom."""
