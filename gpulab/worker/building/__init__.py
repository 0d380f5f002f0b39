"""Builds of variants: what they are given, what they return, and what must stay as it was."""
