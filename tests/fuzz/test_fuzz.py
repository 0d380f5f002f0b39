"""Odd run files, events of workers and traces, for a moment each: no traceback, no hang."""

import importlib
import time
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

KINDS = ("run_files", "event_streams", "traces")
FEWEST, BUDGET_S = 5, 0.15
MOST_S = 10.0
"""Of one case, on a machine that others share."""


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_that_comes_in_breaks_or_hangs_the_lab(kind, tmp_path):
    module = importlib.import_module(f"fuzz.{kind}")
    end = time.monotonic() + BUDGET_S
    checked = 0

    @settings(max_examples=500, derandomize=True)
    @given(st.integers(0, 2**32))
    def holds(seed):
        nonlocal checked
        if checked >= FEWEST and time.monotonic() > end:
            return
        case = module.case(Random(seed))
        begun = time.monotonic()
        module.check(case, tmp_path)
        assert time.monotonic() - begun < MOST_S
        checked += 1

    holds()
    assert checked >= FEWEST


def test_a_check_sees_what_breaks(tmp_path, monkeypatch):
    run_files = importlib.import_module("fuzz.run_files")
    monkeypatch.setattr("fuzz.run_files.show", lambda run: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run_files.check(b"\n".join(run_files._recorded()[0]) + b"\n", tmp_path)
