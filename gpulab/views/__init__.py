"""Floor 2: pure functions from results and states to what Rich can print."""
