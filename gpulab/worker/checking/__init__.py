"""Checks beside the comparison of outputs: of other values, null answers, what reads and what is timed."""
