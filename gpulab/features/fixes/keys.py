"""The key of the screen: its name in the user's file of keys, the key, and what it does."""

NAME = "fixes"
KEY = "F"
WHAT = "try fixes of a function: each as a variant of its step"
