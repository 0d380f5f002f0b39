"""The session's own clock and comparison: what a worker says of itself is held against them."""

import pytest

from gpulab.protocol.events import OutputSample, Stopped, TimerBracket
from gpulab.protocol.jobs import Measure, ScenarioFile, VariantInfo
from gpulab.protocol.statuses import CheckKind, StopReason
from gpulab.session import outside_checks
from gpulab.session.outside_checks import OutsideChecks


@pytest.fixture
def now(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(outside_checks, "monotonic", lambda: clock[0])
    return clock


@pytest.fixture
def checks():
    variants = tuple(VariantInfo(name=name) for name in ("before", "after"))
    subject = ScenarioFile(scenario="x", path="x.py", source_sha256="0", variants=variants)
    return OutsideChecks(Measure(device="cpu", threads=1, subject=subject))


def stretch(checks, now, claimed_s, took_s, number=0):
    checks.see(TimerBracket(variant="after", number=number))
    now[0] += took_s
    checks.see(TimerBracket(variant="after", number=number, claimed_s=claimed_s))


def sample(variant, values, *, tolerance=1e-4, number=1, elements=100, places=None):
    places = list(range(len(values))) if places is None else places
    return OutputSample(
        variant=variant, number=number, elements=elements, places=places, values=values, tolerance=tolerance
    )


def shown(checks, kind):
    return next((result for result in checks.see(Stopped(reason=StopReason.TIME)) if result.check == kind), None)


@pytest.mark.parametrize(
    ("claimed_s", "took_s", "ok"),
    [(0.12, 0.12, True), (0.12, 0.125, True), (0.06, 0.12, False), (0.24, 0.12, False), (0.12, 0.16, False)],
)
def test_a_clock_is_believed_as_far_as_another_confirms_it(checks, now, claimed_s, took_s, ok):
    stretch(checks, now, claimed_s, took_s)
    result = shown(checks, CheckKind.TIMER)
    assert (result.variant, result.ok, result.count) == ("after", ok, 1)
    assert (result.reason is None) == ok
    assert result.values["claimed_s"] == claimed_s
    assert result.values["seen_s"] == pytest.approx(took_s)


def test_a_session_that_was_late_once_accuses_nobody(checks, now):
    stretch(checks, now, 0.12, 0.3)
    stretch(checks, now, 0.12, 0.121, number=1)
    result = shown(checks, CheckKind.TIMER)
    assert result.ok
    assert result.count == 2


def test_what_has_no_beginning_or_is_too_short_says_nothing(checks, now):
    checks.see(TimerBracket(variant="after", number=0, claimed_s=0.1))
    stretch(checks, now, 0.001, 0.01)
    assert shown(checks, CheckKind.TIMER) is None


def test_results_are_told_once(checks, now):
    stretch(checks, now, 0.12, 0.12)
    assert shown(checks, CheckKind.TIMER)
    assert shown(checks, CheckKind.TIMER) is None
    stretch(checks, now, 0.06, 0.12)
    assert not checks.results()[0].ok


BASELINE = [1.0, -2.0, 3.0, 0.5]


@pytest.mark.parametrize(
    ("values", "tolerance", "ok"),
    [
        (BASELINE, 1e-4, True),
        ([1.00005, -2.0001, 3.0, 0.5], 1e-4, True),
        ([0.0, 0.0, 0.0, 0.0], 1e-4, False),
        ([0.0, 0.0, 0.0, 0.0], 1e9, False),  # whatever the worker says that is allowed
        ([1.01, -2.0, 3.0, 0.5], 1e-4, False),
        ([1.01, -2.0, 3.0, 0.5], 2e-2, True),
        ([None, -2.0, 3.0, 0.5], 1e-4, False),
    ],
)
def test_outputs_are_compared_here_too(checks, values, tolerance, ok):
    checks.see(sample("before", BASELINE))
    checks.see(sample("after", values, tolerance=tolerance))
    result = shown(checks, CheckKind.OUTSIDE)
    assert (result.variant, result.ok, result.count) == ("after", ok, 1)
    assert ok or (result.wrong and result.reason.code == "outputs_differ_outside")


def test_elements_of_other_places_or_of_other_values_are_no_evidence(checks):
    checks.see(sample("before", BASELINE))
    checks.see(sample("after", BASELINE, number=2))
    assert shown(checks, CheckKind.OUTSIDE) is None
    checks.see(sample("after", BASELINE, places=[0, 1, 2, 4]))
    assert not shown(checks, CheckKind.OUTSIDE).ok


def test_small_errors_of_many_outputs_add_up(checks):
    for number in range(10):
        checks.see(sample("before", BASELINE, number=number))
        checks.see(sample("after", [value * 1.0005 for value in BASELINE], number=number))
    result = shown(checks, CheckKind.OUTSIDE)
    assert not result.ok
    assert result.count == 10
    assert result.values["error"] == pytest.approx(5e-4)


def test_a_worker_that_sends_without_end_fills_no_memory(checks):
    for number in range(1000):
        checks.see(sample("before", BASELINE, number=number))
        checks.see(TimerBracket(variant="after", number=number))
    assert len(checks._expected) <= 256
    assert len(checks._opened) <= 256
