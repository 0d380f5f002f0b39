"""Goodput: the share of a step's time that does the work the step is for, and where the rest goes."""

from __future__ import annotations

USEFUL = "useful"
