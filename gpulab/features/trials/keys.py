"""The keys of the screen: the name in the user's file of keys, the key, and what it does."""

KEYS = (
    ("fixes", "F", "try fixes of a function: each as a variant of its step"),
    ("what_if", "w", "causal profiling: the virtual speedup of each part of a step"),
)
