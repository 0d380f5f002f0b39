"""Findings of a whole run: how it ended, what weakens its result, what explains it."""

from __future__ import annotations

from gpulab.core.findings import Rank, finding, plain
from gpulab.core.statuses import CheckKind
from gpulab.core.units import byte_count, seconds, span, times

never_started = plain("never_started", "the run has not started")
no_end = plain("no_end", "incomplete run file: killed or still running")
stopped_after_measuring = plain(
    "stopped_after_measuring", "the measurement is complete; what follows it was stopped"
)
stopped_while_measuring = plain(
    "stopped_while_measuring", "stopped while measuring: earlier results are in the run file"
)
ended_before = plain("ended_before", "not measured: the run ended before it")


@finding()
def failed_after(*, count: int, unit: str) -> str:
    return f"failed after {count} {unit}: their pairs are kept"


@finding()
def baseline_skipped(*, cause: str | None) -> str:
    return f"the baseline was skipped, so nothing was measured: {cause or 'unknown'}"


@finding()
def control_differs(*, verdict: str, speedup: float | None) -> str:
    return (
        f"the control, a second build of the baseline, came out {verdict} ({times(speedup)}): "
        "measure again"
    )


@finding()
def nothing_compared(*, required: float) -> str:
    return "--fail-below requires a comparison, and nothing is compared"


@finding()
def below_required(*, required: float, variant: str = "") -> str:
    return f"the interval of {variant} lies below the required {required:g}x"


@finding()
def not_shown_to_reach(*, required: float, variant: str = "") -> str:
    return f"{variant} is inconclusive against the required {required:g}x"


@finding()
def exercise_unchecked(*, variant: str = "") -> str:
    return f"{variant} is unchecked: an exercise requires a compared result"


@finding()
def sustained_contradicts(*, interleaved: float | None, sustained: float | None) -> str:
    return (
        f"{times(interleaved)} when interleaved and {times(sustained)} alone: it depends on what "
        "else runs"
    )


plain_function = plain("plain_function", "a plain function: nothing to compare it with")
plain_functions = plain(
    "plain_functions",
    "plain functions: nothing is checked and nothing compared, so no speedup is claimed",
    rank=Rank.INVALIDATING,
)
checked_in_its_own_run = plain(
    "checked_in_its_own_run", "checked in its own run: with another parameter its output differs"
)


@finding(rank=Rank.INVALIDATING)
def declared_unchecked(*, reason: str) -> str:
    return f"unchecked: {reason}"


@finding()
def builds_differ(*, speedup: float | None) -> str:
    return (
        f"two builds of the first function differ: {times(speedup)}; times of single builds vary "
        "by as much"
    )


@finding(
    check=CheckKind.CLOCKS,
    short=lambda drift: f"drifting {drift:.1%}",
    several="still drifting when the warm-up ended:",
    each=lambda drift: f"by {drift:.1%}",
)
def warm_up_drifts(*, drift: float) -> str:
    return f"still drifting by {drift:.1%} when its warm-up ended"


@finding(
    check=CheckKind.CONTENTION,
    short=lambda share: f"contention {share:.0%}",
    several="descheduled for a part of the time (contention on a busy machine, or steps that "
    "wait):",
    each=lambda share: f"{share:.0%}",
)
def off_the_cpu(*, share: float) -> str:
    return (
        f"descheduled for {share:.0%} of the time (contention on a busy machine, or a step that "
        "waits)"
    )


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
    rank=Rank.EXPLAINING,
    several="compute in lower precision, checked to a larger relative error:",
    each=lambda allowed, baseline: f"{allowed:.0e} (baseline {baseline:.0e})",
)
def lower_precision(*, allowed: float, baseline: float) -> str:
    return (
        f"computes in lower precision: checked to a relative error of {allowed:.0e}, not "
        f"{baseline:.0e}"
    )


@finding()
def no_effect(*, reason: str) -> str:
    return f"no effect here: {reason}"


@finding(rank=Rank.REMARK)
def same_operations(*, against: str) -> str:
    return f"it runs the same operations as {against}, on operands of the same shapes"


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
    rank=Rank.REMARK,
    several="first steps, which compile or set up, apart from these times:",
    each=lambda first_step_s: seconds(first_step_s),
)
def first_step_sets_up(*, first_step_s: float) -> str:
    return (
        f"its first step, which compiles or sets up, took {seconds(first_step_s)}, apart from "
        "these times"
    )


@finding(
    rank=Rank.REMARK,
    several="page faults, memory touched for the first time, per step:",
    each=lambda faults, bytes: f"{faults:,.0f} ({byte_count(bytes)})",
)
def page_faults(*, faults: float, bytes: float) -> str:
    return (
        f"{faults:,.0f} page faults a step: {byte_count(bytes)} of memory touched for the first "
        "time"
    )
