"""Clocks, and what is timed by them: candidates, plans, samples, solo runs."""
