"""Figures beside the verdicts, or in their place: memory against time, first steps, clocks."""
