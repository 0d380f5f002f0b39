"""Partitions of traces made by hand, in microseconds."""

import pytest
from traces import document

from gpulab.core.payloads import CATEGORIES
from gpulab.features.goodput.analysis import partition
from gpulab.traces.trace import read


def partition_of(*events, off_cpu=None, length=1000, taken_s=0.0):
    return partition(read(document(*events, length=length)), off_cpu or {}, taken_s)


def shares(parts):
    """Fractions of the window."""
    return {name: part_s / parts.window_s for name, part_s in parts.seconds.items()}


def microseconds(*events, off_cpu=None, length=1000):
    """The categories of a partition that are not empty; checked to be in order, and to sum to the
    window.
    """
    parts = partition_of(*events, off_cpu=off_cpu, length=length)
    assert sum(parts.seconds.values()) == pytest.approx(parts.window_s, abs=1e-15)
    assert [category for category in CATEGORIES if category in parts.seconds] == list(parts.seconds)
    rounded = {category: round(1e6 * seconds, 3) for category, seconds in parts.seconds.items()}
    return {category: amount for category, amount in rounded.items() if amount}
