"""Findings of a whole run: how it ended, what weakens its result, what explains it."""

from __future__ import annotations

from gpulab.core.findings import Rank, finding
from gpulab.core.statuses import CheckKind, IntervalUnit
from gpulab.core.units import plural, span, times


@finding("--variant names others")
def not_asked_for() -> None: ...
@finding("the run has not started")
def never_started() -> None: ...
@finding("incomplete run file: killed or still running")
def no_end() -> None: ...
@finding("the measurement is complete; what follows it was stopped")
def stopped_after_measuring() -> None: ...
@finding("stopped while measuring: earlier results are in the run file")
def stopped_while_measuring() -> None: ...
@finding("stopped before it measured (stage: {reached})")
def stopped_before_measuring(*, reached: str) -> None: ...
@finding("not measured: the run ended before it")
def ended_before() -> None: ...


@finding()
def failed_after(*, count: int, unit: str) -> str:
    noun = "process" if unit == IntervalUnit.PROCESSES else "build"
    return f"failed after {plural(count, noun)}: their pairs are kept"


@finding("the baseline was skipped, so nothing was measured: {cause}")
def baseline_skipped(*, cause: str) -> None: ...
@finding(
    "A/A control failed: a second build of the baseline is {verdict} ({speedup:times}); measure "
    "again"
)
def control_differs(*, verdict: str, speedup: float | None) -> None: ...
@finding("--fail-below requires a comparison, and nothing is compared")
def nothing_compared(*, required: float) -> None: ...
@finding("the interval of {variant} lies below the required {required:g}x")
def below_required(*, required: float) -> None: ...
@finding("{variant} is not shown to reach the required {required:g}x")
def not_shown_to_reach(*, required: float) -> None: ...
@finding("{variant} is unchecked: an exercise requires a compared result")
def exercise_unchecked() -> None: ...
@finding("sensitive to interleaving: {interleaved:times} interleaved, {sustained:times} alone")
def sustained_contradicts(*, interleaved: float | None, sustained: float | None) -> None: ...
@finding("a plain function: nothing to compare it with")
def plain_function() -> None: ...
@finding(
    "plain functions: nothing is checked and nothing compared, so no speedup is claimed",
    rank=Rank.INVALIDATING,
)
def plain_functions() -> None: ...
@finding("checked in its own run: with another parameter its output differs")
def checked_in_its_own_run() -> None: ...
@finding("unchecked: {reason}", rank=Rank.INVALIDATING)
def declared_unchecked(*, reason: str) -> None: ...
@finding(
    "the first function, built twice, differs from itself: {speedup:times}; times of single builds "
    "vary by as much"
)
def builds_differ(*, speedup: float | None) -> None: ...
@finding(
    "still drifting by {drift:.1%} when its warm-up ended",
    several="still drifting when the warm-up ended:",
    each="by {drift:.1%}",
)
def warm_up_drifts(*, drift: float) -> None: ...
@finding(
    "off the CPU for {share:.0%} of the time (contention on a busy machine, or a step that waits)",
    check=CheckKind.CONTENTION,
    short="off the CPU {share:.0%}",
    several="off the CPU for a part of the time (contention on a busy machine, or steps that "
    "wait):",
    each="{share:.0%}",
)
def off_the_cpu(*, share: float) -> None: ...


def _solo_change(change: float) -> str:
    return f"{abs(change):.1%} {'longer' if change > 0 else 'less'}"


@finding(
    rank=Rank.EXPLAINING,
    several="in a solo run a step took more or less time than when interleaved:",
    each=_solo_change,
)
def solo_run_differs(*, change: float, seconds: float) -> str:
    return (
        f"in a solo run of {seconds:.0f} s a step took {_solo_change(change)} than when interleaved"
    )


@finding(
    "computes in lower precision: checked to a relative error of {allowed:.0e}, not {baseline:.0e}",
    rank=Rank.EXPLAINING,
    several="compute in lower precision, checked to a larger relative error:",
    each="{allowed:.0e} (baseline {baseline:.0e})",
)
def lower_precision(*, allowed: float, baseline: float) -> None: ...
@finding("no effect here: {reason}")
def no_effect(*, reason: str) -> None: ...
@finding(
    "it runs the same operations as {against}, on operands of the same shapes", rank=Rank.REMARK
)
def same_operations(*, against: str) -> None: ...


def _together(product: float, speedup: float, low: float | None, high: float | None) -> str:
    interval = span(low or speedup, high or speedup)
    individual = f"product of the individual speedups {times(product)}"
    return f"{individual}, all fixes together {times(speedup)} ({interval})"


@finding()
def fixes_overlap(*, product: float, speedup: float, low: float | None, high: float | None) -> str:
    return (
        f"{_together(product, speedup, low, high)}: some shorten the same part of the step, and "
        "a part can be removed only once"
    )


@finding()
def fixes_compound(*, product: float, speedup: float, low: float | None, high: float | None) -> str:
    return (
        f"{_together(product, speedup, low, high)}: one fix leaves a shorter step, of which the "
        "next removes a larger share (Amdahl)"
    )


@finding()
def fixes_multiply(*, product: float, speedup: float, low: float | None, high: float | None) -> str:
    return f"{_together(product, speedup, low, high)}: as much as the product"


@finding(
    "its first step, which compiles or sets up, took {first_step_s:seconds}, apart from these "
    "times",
    rank=Rank.REMARK,
    several="first steps, which compile or set up, apart from these times:",
    each="{first_step_s:seconds}",
)
def first_step_sets_up(*, first_step_s: float) -> None: ...
@finding(
    "{faults:,.0f} page faults a step: {bytes:bytes} of memory touched for the first time",
    rank=Rank.REMARK,
    several="page faults, memory touched for the first time, per step:",
    each="{faults:,.0f} ({bytes:bytes})",
)
def page_faults(*, faults: float, bytes: float) -> None: ...


@finding(
    "the store was damaged, and is now {file}: earlier runs are read from their files again, "
    "ceilings and choices are measured again",
    rank=Rank.EXPLAINING,
)
def store_set_aside(*, file: str) -> None: ...


@finding(
    "the store is not used: {why}; earlier runs, ceilings and choices of gpulab.tune are not "
    "reused",
    rank=Rank.EXPLAINING,
)
def store_unused(*, why: str) -> None: ...
