"""Floor 2: the state folded from the events of a run, and the one complete report made of it."""
