"""The key of the screen: its name in the user's file of keys, the key, and what it does."""

NAME = "what_if"
KEY = "w"
WHAT = "causal profiling: the virtual speedup of each part of a step"
