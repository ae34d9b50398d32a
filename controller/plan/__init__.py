"""``vramscope plan``: what of a model fits a GPU, how many requests, and which settings suit."""
