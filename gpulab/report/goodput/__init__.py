"""Goodput in the report: of steps, and of whole jobs."""
