"""Findings of checks: what each showed, why one refuses a variant, what casts doubt on a result."""

from __future__ import annotations

from math import isclose

from gpulab.core import units
from gpulab.core.findings import Rank, finding
from gpulab.core.statuses import CheckKind
from gpulab.core.units import plural, span, times

_UNNOTICED = "a result computed in the build would go unnoticed"
_CLOSE = 0.01
_MANY = 10_000


def _which_output(output: int, outputs: int) -> str:
    return "its output" if outputs == 1 else f"output {output} of {outputs}"


def _off(error: float | None) -> str:
    return "relative error unbounded" if error is None else f"relative error {error:.2g}"


def _relative_error(error: float | None, allowed: float) -> str:
    return f"{_off(error)}, allowed {allowed:.0e}"


# Wrong outputs


def _at(place: str) -> str:
    """`place`: which output, which element, and what it is."""
    return f"; {place}" if place else ""


@finding()
def relative_error(*, error: float | None, allowed: float, place: str = "") -> str:
    return f"{_relative_error(error, allowed)}{_at(place)}"


@finding()
def one_element_off(*, largest: float, allowed: float, place: str = "") -> str:
    return f"one element is off by {largest:.2g}, allowed {allowed:.1g}{_at(place)}"


@finding()
def elements_differ(*, differ: int, elements: int, place: str = "") -> str:
    return f"{differ} of {elements} elements differ{_at(place)}"


@finding()
def element_counts_differ(*, elements: int, baseline: int, place: str = "") -> str:
    return f"the output has {elements} elements, the baseline's {baseline}{_at(place)}"


@finding()
def shapes_differ(*, shape: str, baseline: str, place: str = "") -> str:
    shapes = f"the output has shape {shape}, the baseline's {baseline}"
    return f"{shapes}: a dimension is lost{_at(place)}"


@finding()
def output_has_nan(*, place: str = "") -> str:
    return f"the output and the baseline's do not hold NaN at the same places{_at(place)}"


@finding()
def farther_from_float64(
    *, error: float, allowed: float, own: float, baseline: float, place: str = ""
) -> str:
    return (
        f"{_relative_error(error, allowed)}; against the baseline in float64 it is off by "
        f"{own:.2g}, the baseline by {baseline:.2g}{_at(place)}"
    )


@finding()
def wrong_in_case(*, case: str, fails: bool, error: float | None, allowed: float) -> str:
    if fails:
        return f"it fails in the case {case}, and the baseline does not"
    differs = _relative_error(error, allowed) if allowed else "its elements differ"
    return f"in the case {case}: {differs}"


@finding()
def timed_step_is_wrong(*, error: float | None, allowed: float, change: str) -> str:
    changed = f"after new values in its inputs ({change})" if change else "between steps"
    return f"in a timed block, {changed}: {_relative_error(error, allowed)}"


@finding(
    "in a timed block its output is that of the inputs before they changed ({change}): a result "
    "was cached"
)
def timed_step_is_stale(*, change: str) -> None: ...
@finding("gradient {tensor} of {tensors} that its steps leave in .grad is not the baseline's")
def gradient_differs(*, tensor: int, tensors: int, error: float | None) -> None: ...
@finding()
def effect_differs(*, effect: str, count: int, error: float | None) -> str:
    return (
        f"its steps leave {plural(count, 'tensor')} beside their output (such as {effect}) that "
        f"are not the baseline's: {_off(error)}"
    )


@finding("its steps do not change tensor {tensor} of {tensors} of its state, and the baseline's do")
def state_not_updated(*, tensor: int, tensors: int) -> None: ...
@finding(
    "its state after its steps differs from the baseline's: relative error {error:.2g}, allowed "
    "{allowed:g}"
)
def state_differs(*, error: float, allowed: float) -> None: ...
@finding("output not fully written: sentinel values remain")
def does_not_write_its_output() -> None: ...
@finding("the baseline's own output is all NaN")
def baseline_is_nan() -> None: ...
@finding(
    "its state holds NaN after a block of {steps:plural step}: that is what is timed; a smaller "
    "learning rate keeps a training finite",
    check=CheckKind.TIMED_STEPS,
    short="its state diverges",
)
def state_diverges(*, steps: int) -> None: ...
@finding("the step changes its inputs: name them as state, or write elsewhere")
def changes_inputs() -> None: ...
@finding("its output shares memory with its inputs, where the baseline writes one of its own")
def output_is_its_input() -> None: ...


# Work that is not done in the timed step


@finding()
def computes_when_read(*, kind: str, output: int = 1) -> str:
    return (
        f"value {output} of its output is a {kind}, a class of its own that may compute when it is "
        "read: return a plain tensor or array"
    )


@finding(
    "a step takes {ratio:.3g} times as long once its inputs have new values (the baseline's "
    "{baseline:.2g}): it caches results"
)
def remembers_its_inputs(*, ratio: float, baseline: float) -> None: ...
@finding(
    "an isolated step takes {ratio:.3g}x a step in a timed block (the baseline's {baseline:.2g}x): "
    "work is cached or deferred"
)
def computes_when_waited_for(*, ratio: float, baseline: float) -> None: ...
@finding(
    "random inputs are generated once and reused: only the first step after the generators were "
    "seeded draws any"
)
def draws_when_seeded() -> None: ...
@finding(
    "its output does not follow input {input} of {inputs}, into which values of another seed were "
    "written: it is of the values before"
)
def ignores_its_inputs(*, input: int, inputs: int) -> None: ...
@finding("another seed changes the baseline's inputs and not its own: name what the step reads")
def inputs_not_from_the_seed() -> None: ...


# What casts doubt on a result


@finding(check=CheckKind.DETERMINISM, short="output changes from step to step")
def state_not_restored(*, output: int, outputs: int, error: float | None = None) -> str:
    return (
        f"{_which_output(output, outputs)} changes between steps although Work(state=...) is "
        "restored: undeclared state, such as a data loader's iterator or a random generator; "
        "checked on fresh builds instead"
    )


@finding(check=CheckKind.DETERMINISM, short="output changes from step to step")
def state_not_named(*, output: int, outputs: int, error: float | None = None) -> str:
    return (
        f"{_which_output(output, outputs)} changes from step to step: name what a step changes "
        "in Work(state=...), or draw its data before the step, to have all checks"
    )


@finding(
    "unchecked: the step returns nothing; return its output, or name Work(output=...)",
    rank=Rank.INVALIDATING,
    short="returns nothing",
)
def returns_nothing() -> None: ...
@finding(
    "tolerance={declared:g} is larger than is allowed: checked to {cap:.0e}",
    check=CheckKind.OUTPUTS,
    short="tolerance widened",
)
def tolerance_capped(*, declared: float, cap: float) -> None: ...
@finding(
    "tolerance={declared:g} allows more than its dtypes do ({usual:.0e})",
    check=CheckKind.OUTPUTS,
    short="tolerance widened",
)
def tolerance_widened(*, declared: float, usual: float) -> None: ...
@finding(
    "its steps leave {count:plural gradient} in .grad, those of the baseline {baseline}",
    check=CheckKind.OUTPUTS,
    short="gradients not computed",
)
def gradients_not_left(*, count: int, baseline: int) -> None: ...
@finding(
    "its steps change {count:plural tensor} that only later ones read, such as running statistics, "
    "those of the baseline {baseline}",
    check=CheckKind.OUTPUTS,
    short="side effects left out",
)
def effects_not_left(*, count: int, baseline: int) -> None: ...
@finding(
    "weak check: {answer} would pass for its output at a relative error of {allowed:.0e}",
    short="{answer} would pass",
)
def null_answer_passes(*, answer: str, allowed: float) -> None: ...
@finding(
    "weak check: the baseline's output is all zeros",
    check=CheckKind.NULL_ANSWERS,
    short="output all zeros",
)
def baseline_is_zeros() -> None: ...
@finding(
    "the baseline's output holds NaN: what a step leaves unwritten there would go unnoticed",
    check=CheckKind.DETERMINISM,
    short="baseline holds NaN",
)
def baseline_holds_nan() -> None: ...


@finding(
    "its output differs from the baseline's by {error:.2g}, and is as near to the baseline in "
    "float64: off by {own:.2g}, the baseline by {baseline:.2g}",
    rank=Rank.EXPLAINING,
)
def near_to_float64(*, error: float, own: float, baseline: float) -> None: ...
@finding(
    "its output differs from the baseline's by {error:.2g}, allowed {allowed:.0e}: perhaps "
    "rounding, since the baseline does not run in float64",
    check=CheckKind.OUTPUTS,
    short="differs by {error:.2g}",
)
def maybe_rounding(*, error: float, allowed: float) -> None: ...


@finding()
def output_of_another_kind(*, output: int, outputs: int, kind: str, baseline: str) -> str:
    return f"{_which_output(output, outputs)} is {kind}, the baseline's {baseline}"


@finding("it returns {outputs:plural value}, the baseline {baseline}")
def outputs_cut_differently(*, outputs: int, baseline: int) -> None: ...
@finding(
    "one of its inputs is read-only, reversed or in memory that is not its own, so "
    + _UNNOTICED
    + ": name a copy (numpy.array)",
    check=CheckKind.INPUTS,
    short="inputs cannot be changed",
)
def inputs_read_only() -> None: ...
@finding(
    "one of its inputs is {kind}, whose values cannot be exchanged, so " + _UNNOTICED,
    check=CheckKind.INPUTS,
    short="inputs cannot be changed",
)
def inputs_not_exchanged(*, kind: str) -> None: ...
@finding(
    "its inputs hold no tensors or arrays, so " + _UNNOTICED,
    check=CheckKind.INPUTS,
    short="no tensors in its inputs",
)
def inputs_without_tensors() -> None: ...
@finding("names no inputs, so " + _UNNOTICED, check=CheckKind.INPUTS, short="no inputs named")
def no_inputs_named() -> None: ...
@finding(
    "it names no inputs where the baseline does, so a stale result would go unnoticed",
    check=CheckKind.INPUTS,
    short="no inputs named",
)
def inputs_not_named() -> None: ...
@finding(
    "its output does not change with its inputs, so " + _UNNOTICED,
    check=CheckKind.INPUTS,
    short="output does not follow its inputs",
)
def output_ignores_change() -> None: ...
@finding(
    f"another seed gives its inputs the same values, so {_UNNOTICED}: draw them at random",
    check=CheckKind.INPUTS,
    short="inputs the same with another seed",
)
def seed_changes_nothing() -> None: ...
@finding(
    "another seed gives its inputs other shapes, so a result computed in the build could go "
    "unnoticed",
    check=CheckKind.INPUTS,
    short="inputs of other shapes with another seed",
)
def seed_changes_shapes() -> None: ...
@finding(
    "its inputs hold the data in another layout than the baseline's: the conversion is done in "
    "the build, and is not timed",
    check=CheckKind.INPUTS,
    short="inputs prepared in its build",
)
def layout_made_in_build() -> None: ...


@finding(check=CheckKind.INPUTS, short="not all inputs named")
def inputs_incomplete(*, error: float | None) -> str:
    return (
        "with the values of another seed copied into its inputs its output is not the baseline's "
        f"({_off(error)}), though its own build with that seed is right: name all "
        "tensors that depend on the data"
    )


@finding(check=CheckKind.INPUTS, short="an input has no effect")
def input_without_effect(*, input: int, inputs: int, zero: bool = False) -> str:
    is_zero = ", which is zero in every seed," if zero else ""
    return (
        f"other values in input {input} of {inputs}{is_zero} change the baseline's output, and not "
        "its own"
    )


@finding(
    "{host_s:seconds} on the host's clock, {device_s:seconds} on the device's: join side streams "
    "in the step",
    rank=Rank.INVALIDATING,
    short="work beside the stream",
    several="more time on the host's clock than on the device's (join side streams in the step):",
    each="{host_s:seconds} against {device_s:seconds}",
)
def work_beside_the_stream(*, host_s: float, device_s: float) -> None: ...
@finding(
    "{flops:.3g} FLOP per item counted, {baseline:.3g} of the baseline: less work, or another "
    "algorithm",
    short="fewer FLOPs",
)
def fewer_flops(*, flops: float, baseline: float) -> None: ...
@finding("fewer FLOPs than the baseline, counted on the first rank alone: others may do more")
def flops_of_first_rank() -> None: ...
@finding("the control leaves out 1: {low:times} to {high:times}", short="control leaves out 1")
def control_leaves_out_1(*, speedup: float, low: float, high: float) -> None: ...
@finding(
    "the control is wider than the effect: {low:times} to {high:times}",
    short="control wider than the effect",
)
def control_too_wide(*, speedup: float, low: float, high: float) -> None: ...
@finding("one process: another one, or another hour, may give another ratio")
def measured_in_one_process() -> None: ...
@finding("{count:plural process/processes}: an interval needs {needed}")
def few_processes(*, count: int, needed: int) -> None: ...
@finding(
    "successive processes are autocorrelated ({correlation:.2f}): drift",
    short="correlation {correlation:.2f}",
)
def processes_correlated(*, correlation: float) -> None: ...


# Why a check did not run


@finding("contention is measured with one thread of one process only")
def contention_of_threads() -> None: ...
@finding("a CPU does not report what throttles its clocks")
def clocks_of_cpu() -> None: ...
@finding("operations of torch are counted, and these steps call none")
def calls_nothing_of_torch() -> None: ...
@finding("not made in this run", short="outputs not compared")
def check_not_made() -> None: ...
@finding(
    "its speedup is {ratio:.2f}x smaller ({low:.2f} to {high:.2f}) on values that no step had "
    "before: the rest comes of warm caches, or of what earlier steps left",
    check=CheckKind.TIMED_STEPS,
    short="less on new values",
)
def less_on_new_values(*, ratio: float, low: float, high: float) -> None: ...
@finding(
    "a step from restored state takes {ratio:.3g} times as long as the ones after it: the second "
    "step of a block gets what the first left",
    check=CheckKind.TIMED_STEPS,
    short="later steps of a block do less",
)
def first_step_does_more(*, ratio: float) -> None: ...
@finding("no timed block could be compared on other values", short="timed steps not checked")
def no_block_on_other_values() -> None: ...
@finding("not checked: {checks:list}", short="not checked: {checks:list}")
def checks_not_run(*, checks: list[str]) -> None: ...


# What a check that passed showed


def _error(error: float | None, allowed: float | None) -> str:
    """Return how far off the worst of them was, and what is allowed."""
    if error is None:
        return ""
    limit = f" (allowed {allowed:.2g})" if allowed is not None else ""
    return f"largest error {error:.2g}{limit}"


@finding(shows=CheckKind.OUTPUTS)
def outputs_compared(*, error: float | None = None, allowed: float | None = None) -> str:
    return _error(error, allowed) or "equal"


@finding(shows=CheckKind.TIMED_STEPS)
def timed_steps_checked(
    *,
    count: int,
    error: float | None = None,
    allowed: float | None = None,
    late: int = 0,
    state: int = 0,
) -> str:
    parts = (
        plural(count, "block checked", "blocks checked"),
        _error(error, allowed),
        f"{late:,} with values that change between two steps" if late else "",
        f"state of {plural(state, 'tensor')} checked too" if state else "",
    )
    return ", ".join(filter(None, parts))


@finding(shows=CheckKind.INPUTS)
def inputs_compared(*, inputs: int | None = None) -> str:
    if inputs is None:
        return "no remarks"
    return f"the output follows other values of {plural(inputs, 'tensor')}"


@finding(shows=CheckKind.NULL_ANSWERS)
def null_answers_refused(*, count: int) -> str:
    rejected = plural(count, "null answer rejected", "null answers rejected")
    return f"{rejected} (expected)"


@finding(shows=CheckKind.DETERMINISM)
def steps_repeated(*, count: int) -> str:
    return plural(count, "step agrees", "steps agree")


@finding(shows=CheckKind.PHYSICS)
def rate_below_roof(
    *,
    count: int,
    ratio: float | None = None,
    roof: str | None = None,
    rate: float | None = None,
    unit: str = "",
) -> str:
    if ratio is None or roof is None:
        return plural(count, "roof compared", "roofs compared")
    reached = "its rate" if rate is None else f"{units.rate(rate)}{unit}/s"
    return f"{reached}, {ratio:.0%} of the measured roof ({roof})"


@finding(shows=CheckKind.CONTEXT)
def context_and_output_watched(*, count: int) -> str:
    return plural(count, "sample")


def _amount(value: float) -> str:
    return f"{value:g}" if value < _MANY else units.rate(value)


def _compared(words: str, value: float | None, flops: float) -> str:
    if not value or isclose(value, flops, rel_tol=_CLOSE):
        return ""
    return f", {words} {units.rate(value)}"


@finding(shows=CheckKind.WORK)
def work_counted(
    *,
    items: float | None = None,
    baseline_items: float | None = None,
    operations: int | None = None,
    baseline_operations: int | None = None,
    flops: float | None = None,
    baseline_flops: float | None = None,
    declared_flops: float | None = None,
) -> str:
    parts = []
    if items is not None and baseline_items is not None:
        compared = "" if items == baseline_items else f", the baseline {_amount(baseline_items)}"
        parts.append(f"{_amount(items)} item{'s' * (items != 1)}{compared}")
    if operations is not None:
        compared = f", the baseline {baseline_operations:,}" if baseline_operations else ""
        if operations == baseline_operations:
            compared = ", as the baseline"
        parts.append(f"{plural(operations, 'operation')}{compared}")
    if flops:
        declared = _compared("declared", declared_flops, flops)
        baseline = _compared("the baseline", baseline_flops, flops)
        parts.append(f"{units.rate(flops)}FLOP counted{declared}{baseline}")
    return "; ".join(parts) or "no remarks"


@finding(shows=CheckKind.ALONE)
def variants_alone(*, alone: float | None, interleaved: float | None, count: int) -> str:
    processes = plural(count, "process")
    return f"{times(alone)} as the first of {processes}, {times(interleaved)} among others"


@finding(shows=CheckKind.CONTROL)
def control_measured(*, speedup: float | None, low: float | None, high: float | None) -> str:
    return f"{times(speedup)} ({span(low, high)})"


@finding(shows=CheckKind.PROCESSES)
def processes_measured(
    *, count: int, pinned: bool = False, correlation: float | None = None
) -> str:
    parts = [
        plural(count, "process"),
        "pinned entropy (--seed)" if pinned else "fresh entropy",
    ]
    if correlation:
        parts.append(f"correlation {correlation:.2f}")
    return ", ".join(parts)


@finding(shows=CheckKind.CONTENTION)
def contention_measured(
    *,
    share: float | None = None,
    faults: float | None = None,
    switches: float | None = None,
    readings: int | None = None,
) -> str:
    if readings is not None:
        return "no other process used the GPU"
    parts = [f"off the CPU for {share or 0.0:.1%} of the time"]
    if faults and faults >= 1:
        parts.append(f"{faults:,.0f} page faults a step")
    if switches:
        parts.append(f"{switches:.2g} context switches a block")
    return ", ".join(parts)


@finding(shows=CheckKind.CLOCKS)
def clocks_watched(*, readings: int, capped: int = 0) -> str:
    power = f", power cap in {capped}" if capped else ""
    return f"no throttling in {readings} readings{power}"
