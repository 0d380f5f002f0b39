"""Checks beside the comparison of outputs: of inputs, null answers, memory, what reads and what is timed."""
