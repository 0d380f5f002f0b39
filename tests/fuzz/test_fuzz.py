"""Odd run files, for a moment: no traceback, no hang."""

import time
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz import run_files

FEWEST, BUDGET_S = 5, 0.15
MOST_S = 10.0
"""Of one case, on a machine that others share."""


def test_no_run_file_breaks_or_hangs_the_lab(tmp_path):
    end = time.monotonic() + BUDGET_S
    checked = 0

    @settings(max_examples=500, derandomize=True)
    @given(st.integers(0, 2**32))
    def holds(seed):
        nonlocal checked
        if checked >= FEWEST and time.monotonic() > end:
            return
        case = run_files.case(Random(seed))
        begun = time.monotonic()
        run_files.check(case, tmp_path)
        assert time.monotonic() - begun < MOST_S
        checked += 1

    holds()
    assert checked >= FEWEST


def test_a_check_sees_what_breaks(tmp_path, monkeypatch):
    monkeypatch.setattr("fuzz.run_files.show", lambda run: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run_files.check(b"\n".join(run_files._recorded()[0]) + b"\n", tmp_path)
