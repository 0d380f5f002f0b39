"""Predictions: what may be typed, where they are drawn, and what they come to."""

import re

import pytest
from found import finding
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from run_reports import two_variants

from gpulab.core.statuses import BoundKind
from gpulab.features.predictions.report import Prediction, promised
from gpulab.features.predictions.view import axis_view, limit_of, outcome, predictions_of
from gpulab.features.roofline.bound import Cause

TYPED = {"4": [4.0], "4x": [4.0], "4, 2.5X 8": [4.0, 2.5, 8.0], "": [], "  ": [], "1e2": [100.0]}


@pytest.mark.parametrize(("text", "values"), TYPED.items())
def test_numbers_with_or_without_an_x(text, values):
    assert predictions_of(text) == values


@pytest.mark.parametrize("text", ["fast", "0", "-2", "4 or 5", "nan", "inf", "1e99"])
def test_what_is_no_number_above_zero_is_refused(text):
    with pytest.raises(ValueError, match=r"could not convert|^" + re.escape(text)):
        predictions_of(text)


@given(st.lists(st.floats(1e-6, 1e8), max_size=50), st.integers(20, 160))
def test_any_predictions_fit_the_axis(predictions, width):
    lines = axis_view(predictions, width=width).plain.split("\n")
    assert all(len(line) <= width for line in lines)
    marks = "".join(lines[:4])
    assert bool(marks.strip()) == bool(predictions)


def test_a_class_is_a_heap_with_its_median():
    text = axis_view([2, 4, 4, 4, 30], width=80).plain
    assert text.count("●") == 5
    assert "5 predictions, median 4.00x, 2.00x to 30.0x" in text


def test_after_the_run_prediction_and_measurement_stand_together():
    report = two_variants(best="new")
    (comparison,) = report.comparisons
    _, words = outcome(report, Prediction((4.0,)), width=80)
    assert words.plain.startswith("predicted 4.00x; measured 1.50x (")
    assert words.plain.endswith("2.67x less")
    _, words = outcome(report, Prediction((comparison.speedup,)), width=80)
    assert words.plain.endswith("right, within the interval")


@pytest.mark.parametrize(("code", "right"), [("strided_accesses", True), ("phase_waits", False)])
def test_who_says_memory_is_right_where_latency_is_that_of_memory_accesses(code, right):
    report = two_variants(best="new")
    reason = finding(code, share=0.9, phase="data")
    cause = Cause(bound=BoundKind.LATENCY, reason=reason)
    first, *others = report.variants
    report = replace(report, variants=(first.with_parts(cause=cause), *others))
    _, _, words = outcome(report, Prediction((4.0,), "memory"), width=80)
    said = "your prediction: memory-bound; measured: latency-bound"
    assert words.plain == said + ", waiting for memory accesses" * right
    assert ("green" in str(words.style)) == right


CLAIMS = {
    "31x, 20-40x on a GPU": (31.0, 31.0),
    "10-100x with tensor cores": (10.0, 100.0),
    "~2x, 210 ms of allocation a batch removed": (2.0, 2.0),
    "50-70 % of the launch overhead removed, up to 195x": (195.0, 195.0),
    "the device idles at every .item()": None,
    "8x8 tiles": None,
}


@pytest.mark.parametrize(("claim", "ends"), CLAIMS.items())
def test_what_a_claim_promises(claim, ends):
    assert promised(claim) == ends


@pytest.mark.parametrize(
    ("text", "limit"), [("", None), ("m", "memory"), ("Arith", "arithmetic"), ("l", "launches")]
)
def test_a_limit_by_how_it_begins(text, limit):
    assert limit_of(text) == limit


def test_a_limit_that_is_none_is_refused():
    with pytest.raises(ValueError, match="speed"):
        limit_of("speed")
