"""Floor 1: the background process that loads, checks and measures (`python -m gpulab.worker`)."""
