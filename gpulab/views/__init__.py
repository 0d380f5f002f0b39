"""Floor 4: pure functions from reports to what Rich can print. Sentences and formats of numbers are made here only."""
