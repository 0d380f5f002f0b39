"""What is said of the checks of a variant, and of those that a result rests on."""

from __future__ import annotations

from collections.abc import Mapping
from math import isclose

from gpulab.core.units import plural, rate, seconds, span, times
from gpulab.draw.templates import Values, Words


def _which_output(values: Values) -> str:
    return (
        "its output"
        if values["outputs"] == 1
        else f"output {values['output']} of {values['outputs']}"
    )


def _state_not_restored(values: Values) -> str:
    return (
        f"{_which_output(values)} still changes from step to step although Work(state=...) is "
        "restored: something else moves on, such as a data loader's iterator or a random "
        "generator; checked on fresh builds instead"
    )


def _state_not_named(values: Values) -> str:
    return (
        f"{_which_output(values)} changes from step to step: name what a step changes in "
        "Work(state=...), or draw its data before the step, to have all checks"
    )


def _relative_error(values: Values) -> str:
    error = values["error"]
    return (
        f"relative error {'unbounded' if error is None else f'{error:.2g}'}, allowed "
        f"{values['allowed']:.0e}"
    )


def _in_case(values: Values) -> str:
    if values["fails"]:
        return f"it fails in the case {values['case']}, and the baseline does not"
    differs = (
        _relative_error(values) if values["allowed"] else "its elements are not the baseline's"
    )
    return f"in the case {values['case']}: {differs}"


def _timed_step(values: Values) -> str:
    changed = (
        f"after new values in its inputs ({values['change']})" if values["change"] else "in between"
    )
    return f"in a timed block, {changed}: {_relative_error(values)}"


CHECK_WORDS = {
    "declared_unchecked": Words("unchecked: {reason}"),
    "output_is_its_input": Words(
        "its output is memory of its inputs, where the baseline writes one of its own"
    ),
    "output_computes_when_read": Words(
        "its output is computed when it is read, after the clock: it follows changed inputs "
        "without another step"
    ),
    "output_takes_the_time": Words(
        "reading its output takes {output_s:seconds} and a step {step_s:seconds}, the baseline's "
        "{baseline_s:seconds}: work was moved from the step to output="
    ),
    "computes_when_read": Words(
        "its output is a {kind}, a class of its own that may compute when it is read: return a "
        "plain tensor or array"
    ),
    "tolerance_capped": Words(
        "tolerance={declared:g} is more than may be named: checked to {cap:.0e}"
    ),
    "null_answer_passes": Words(
        "the check proves nothing: {answer} would pass for its output at a relative error of "
        "{allowed:.0e}"
    ),
    "timed_step_is_stale": Words(
        "in a timed block its output is that of the inputs before they changed ({change}): a "
        "result was remembered"
    ),
    "timed_step_is_wrong": Words(_timed_step),
    "state_not_updated": Words(
        "its steps leave tensor {tensor} of {tensors} of its state as it was, and the baseline's "
        "change it"
    ),
    "state_differs": Words(
        "its steps change its state otherwise: relative error {error:.2g}, allowed {allowed:g}"
    ),
    "remembers_its_inputs": Words(
        "a step takes {ratio:.3g} times as long once its inputs have new values (the baseline's "
        "{baseline:.2g}): it remembers results"
    ),
    "computes_when_waited_for": Words(
        "a step alone, after a pause, takes {ratio:.3g} times as long as one in a timed block "
        "(the baseline's {baseline:.2g}): most of the timed ones return what another one computed"
    ),
    "returns_nothing": Words(
        "unchecked: the step returns nothing; return its output, or name Work(output=...)"
    ),
    "inputs_not_named": Words(
        "it names no inputs where the baseline does, so a stale result would go unnoticed"
    ),
    "changes_inputs": Words("the step changes its inputs: name them as state, or write elsewhere"),
    "state_not_restored": Words(_state_not_restored),
    "state_not_named": Words(_state_not_named),
    "does_not_write_its_output": Words(
        "the step does not write all of its output: poisoned values came back"
    ),
    "baseline_not_finite": Words("the baseline's own output holds NaN or infinity"),
    "baseline_is_zeros": Words("the baseline's output is all zeros: the check proves little"),
    "output_ignores_change": Words(
        "its output does not follow a change of its inputs, so a result computed in the build "
        "would go unnoticed"
    ),
    "no_inputs_named": Words(
        "names no inputs, so a result computed in the build would go unnoticed"
    ),
    "ignores_its_inputs": Words(
        "its output does not follow input {input} of {inputs}, whose values another seed "
        "changes: was it computed, or copied, in the build?"
    ),
    "inputs_incomplete": Words(
        "with the values of another seed copied into its inputs its output is another than the "
        "baseline's (relative error {error:.2g}), and its own build with that seed is right: "
        "name all tensors that depend on the data"
    ),
    "seed_changes_nothing": Words(
        "another seed gives its inputs the same values, so a result computed in the build would "
        "go unnoticed: draw them at random"
    ),
    "inputs_not_from_the_seed": Words(
        "another seed changes the baseline's inputs and leaves its own as they were: name what "
        "the step reads"
    ),
    "gpu_is_shared": Words(
        "other processes use the GPU: its clock cannot be held against the host's"
    ),
    "computes_in_some_steps": Words(
        "its profile holds {products:.2g} products a step, the baseline's {baseline:.2g}: most "
        "steps do not compute"
    ),
    "seed_changes_shapes": Words(
        "another seed gives its inputs other shapes, so a result computed in the build could go "
        "unnoticed"
    ),
    "unnamed_tensors": Words(
        "it reads {count:count tensor|tensors} ({bytes:bytes}) with values of the seed that "
        "neither its inputs= nor the baseline has: what a build computes is not timed"
    ),
    "layout_made_in_build": Words(
        "its inputs hold the data in another form than the baseline's: bringing them into it is "
        "done in the build, and is not timed"
    ),
    "input_without_effect": Words(
        "other values in input {input} of {inputs} change the baseline's output, and not its own"
    ),
    "draws_when_seeded": Words(
        "only the first step after the generators were seeded draws random numbers; the others "
        "use them again"
    ),
    "tolerance_widened": Words(
        "tolerance={declared:g} allows more than its dtypes do ({usual:.0e})"
    ),
    "norm_in_few_elements": Words(
        "a few elements are over {times:.0e} times the others, and these differ by {error:.2g} "
        "(allowed {allowed:.0e})"
    ),
    "gradients_not_left": Words(
        "its steps leave {count:count gradient|gradients} in .grad, those of the baseline "
        "{baseline}"
    ),
    "gradient_differs": Words(
        "gradient {tensor} of {tensors} that its steps leave in .grad is not the baseline's"
    ),
    "wrong_in_case": Words(_in_case),
    "part_not_computed": Words(
        "a part of its output is one and the same value, where the baseline's differ"
    ),
    "element_counts_differ": Words("the output has {elements} elements, the baseline's {baseline}"),
    "elements_differ": Words("{differ} of {elements} elements differ"),
    "output_has_nan": Words("the output holds NaN where the baseline's does not"),
    "relative_error": Words(_relative_error),
    "one_element_off": Words("one element is off by {largest:.2g}, allowed {allowed:.1g}"),
    "lower_precision": Words(
        "computes in lower precision: checked to a relative error of {allowed:.0e}, not "
        "{baseline:.0e}",
        "compute in lower precision, checked to a larger relative error:",
        "{allowed:.0e} (baseline {baseline:.0e})",
    ),
    "set_while_building": Words("{settings}: set while building; it belongs in Work(context=...)"),
    "set_while_stepping": Words("{settings}: set while stepping; it belongs in Work(context=...)"),
    "left_by_context": Words("{settings}: not restored by the context of its Work"),
    "items_differ": Words(
        "it does {items:g} items a step and the baseline {baseline:g}: do equal work, or compare "
        "per item with Scenario(per='item') and name the part to check as output="
    ),
    "skipped_by_variant": Words("{reason}"),
    "smaller_did_not_fit": Words("{smaller} did not fit into memory, and this one needs more"),
}

_ALIKE = 0.01
_MANY = 10_000


def _error(values: Values) -> str:
    """How far off the worst of them was, and what is allowed."""
    if values.get("error") is None:
        return ""
    allowed = values.get("allowed")
    beside = f" (allowed {allowed:.2g})" if allowed is not None else ""
    return f"largest error {values['error']:.2g}{beside}"


def _counted(values: Values, singular: str, plurals: str) -> str:
    count = values.get("count")
    return "" if count is None else f"{count:,} {singular if count == 1 else plurals}"


def _joined(*parts: str) -> str:
    return ", ".join(filter(None, parts)) or "nothing to add"


def _outputs(values: Values) -> str:
    return _error(values) or "equal"


def _timed_steps(values: Values) -> str:
    late, state = values.get("late"), values.get("state")
    return _joined(
        _counted(values, "block checked", "blocks checked"),
        _error(values),
        f"{late:,} with values that change between two steps" if late else "",
        f"the state of {state:,} tensors as well" if state else "",
    )


def _inputs(values: Values) -> str:
    inputs = values.get("inputs")
    return (
        "" if inputs is None else f"the output follows other values of {plural(inputs, 'tensor')}"
    )


def _null_answers(values: Values) -> str:
    return _counted(values, "null answer fails as it should", "null answers fail as they should")


def _repeated(values: Values) -> str:
    return _counted(values, "step agrees", "steps agree") or "nothing to add"


def _physics(values: Values) -> str:
    ratio, roof, value = values.get("ratio"), values.get("roof"), values.get("rate")
    if ratio is None or roof is None:
        return _counted(values, "roof compared", "roofs compared")
    reached = f"{rate(value)}{values.get('unit', '')}/s" if value is not None else "its rate"
    return f"{reached}, {ratio:.0%} of what was measured ({roof})"


def _left_over(values: Values) -> str:
    left = values.get("left_over_s")
    looks = _counted(values, "look", "looks")
    after = (
        ""
        if left is None
        else f"{seconds(left)} of work after a step"
        if left
        else "no work after a step"
    )
    return _joined(looks, after)


def _context(values: Values) -> str:
    read_s, step_s = values.get("output_s"), values.get("step_s")
    if read_s is None or step_s is None:
        return _counted(values, "look", "looks")
    return f"reading the output takes {seconds(read_s)}, a step {seconds(step_s)}"


def _amount(value: float) -> str:
    return f"{value:g}" if value < _MANY else rate(value)


def _work(values: Values) -> str:
    parts = []
    items, before = values.get("items"), values.get("baseline_items")
    if items is not None and before is not None:
        compared = "" if items == before else f", the baseline {_amount(before)}"
        parts.append(f"{_amount(items)} item{'s' * (items != 1)}{compared}")
    operations, before = values.get("operations"), values.get("baseline_operations")
    if operations is not None:
        compared = (
            ", as the baseline"
            if operations == before
            else f", the baseline {before:,}"
            if before
            else ""
        )
        parts.append(f"{plural(operations, 'operation')}{compared}")
    parts += _flops(values)
    return "; ".join(parts)


def _flops(values: Values) -> list[str]:
    flops, before, declared = (
        values.get(name) for name in ("flops", "baseline_flops", "declared_flops")
    )
    if not flops:
        return []
    beside = (
        f", declared {rate(declared)}"
        if declared and not isclose(declared, flops, rel_tol=_ALIKE)
        else ""
    )
    compared = (
        f", the baseline {rate(before)}"
        if before and not isclose(before, flops, rel_tol=_ALIKE)
        else ""
    )
    return [f"{rate(flops)}FLOP counted{beside}{compared}"]


def _control(values: Values) -> str:
    return f"{times(values.get('speedup'))} ({span(values.get('low'), values.get('high'))})"


def _processes(values: Values) -> str:
    correlation = values.get("correlation")
    parts = [
        plural(values["count"], "process").replace("processs", "processes"),
        "pinned entropy (--seed)" if values.get("pinned") else "fresh entropy",
        f"correlation {correlation:.2f}" if correlation else "",
    ]
    return ", ".join(filter(None, parts))


def _contention(values: Values) -> str:
    if "readings" in values:
        return "no other process used the GPU"
    share, faults, switches = (values.get(name) or 0.0 for name in ("share", "faults", "switches"))
    parts = [
        f"off the CPU for {share:.1%}",
        f"{faults:,.0f} page faults a step" if faults >= 1 else "",
    ]
    parts.append(f"{switches:.2g} preemptions a block" if switches else "")
    return ", ".join(filter(None, parts))


def _clocks(values: Values) -> str:
    capped, readings = values.get("capped"), values.get("readings")
    return f"no slowdown in {readings} readings{f', power cap in {capped}' if capped else ''}"


TRUST_WORDS = {
    "outputs_compared": Words(_outputs),
    "timed_steps_checked": Words(_timed_steps),
    "inputs_compared": Words(_inputs),
    "null_answers_refused": Words(_null_answers),
    "steps_repeated": Words(_repeated),
    "work_counted": Words(_work),
    "rate_below_roof": Words(_physics),
    "nothing_left_running": Words(_left_over),
    "context_and_output_watched": Words(_context),
    "variants_alone": Words(
        "{alone:times} as the first of {count:count process|processes}, {interleaved:times} "
        "among others"
    ),
    "variants_influence": Words(
        "variants influence each other: {interleaved:times} among the others, {alone:times} "
        "where no other was built"
    ),
    "fails_alone": Words("it fails where no other variant was built: {message}"),
    "baseline_slowed": Words(
        "variants influence each other: a step of the baseline takes {later_s:seconds}, and "
        "{before_s:seconds} before the others were built"
    ),
    "control_measured": Words(_control),
    "processes_measured": Words(_processes),
    "contention_measured": Words(_contention),
    "clocks_watched": Words(_clocks),
    "fewer_flops": Words(
        "{flops:.3g} FLOP per item counted, {baseline:.3g} of the baseline: less work, or "
        "another algorithm"
    ),
    "control_inconclusive": Words("the control is inconclusive: {low:times} to {high:times}"),
    "measured_in_one_process": Words(
        "one process: another one, or another hour, may give another ratio"
    ),
    "few_processes": Words("{count:count process|processes}: an interval needs {needed}"),
    "processes_correlated": Words(
        "successive processes are alike (correlation {correlation:.2f}): it drifts"
    ),
    "contention_of_threads": Words("measured with one thread only"),
    "clocks_of_cpu": Words("a CPU does not report what holds its clocks back"),
    "telemetry_off": Words("telemetry is off"),
    "check_not_recorded": Words("not recorded in this run file"),
    "check_not_made": Words("not made in this run"),
    "just_above_roof": Words(
        "{ratio:.0%} of what was measured ({roof}): more than a step should reach"
    ),
    "checks_not_run": Words("not checked: {checks}"),
    "failed_after": Words("it failed after {count} {unit}; their pairs are kept"),
    "power_cap_alone": Words("alone each is held at the power cap; interleaved, they share it"),
    "differs_alone": Words("alone, its steps take another time than among the others"),
    "sustained_contradicts": Words(
        "{interleaved:times} when interleaved and {sustained:times} alone: it depends on what "
        "runs beside it"
    ),
}
REASONS: Mapping[str, str] = {
    "failed_after": "failed after {count} {unit}",
    "measured_in_one_process": "one process",
    "few_processes": "{count:count process|processes}",
    "processes_correlated": "correlation {correlation:.2f}",
    "control_inconclusive": "control inconclusive",
    "checks_not_run": "not checked: {checks}",
    "off_the_cpu": "contention {share:.0%}",
    "gpu_shared": "another process on the GPU",
    "clocks_slowed": "clocks slowed",
    "clocks_not_checked": "clocks not readable",
    "processes_not_checked": "processes not readable",
    "telemetry_off": "clocks not watched",
    "telemetry_ended_early": "telemetry ended early",
    "warm_up_drifts": "drifting {drift:.1%}",
    "outside_earlier_runs": "outside of earlier runs",
    "flops_differ": "FLOPs not as declared",
    "state_not_named": "output changes from step to step",
    "state_not_restored": "output changes from step to step",
    "no_inputs_named": "no inputs named",
    "inputs_not_named": "no inputs named",
    "output_ignores_change": "output does not follow its inputs",
    "baseline_is_zeros": "output all zeros",
    "seed_changes_nothing": "inputs the same with another seed",
    "seed_changes_shapes": "inputs of other shapes with another seed",
    "inputs_incomplete": "not all inputs named",
    "layout_made_in_build": "inputs prepared in its build",
    "input_without_effect": "an input has no effect",
    "tolerance_widened": "tolerance widened",
    "norm_in_few_elements": "small elements differ",
    "unnamed_tensors": "reads tensors that are not named",
    "gradients_not_left": "gradients not computed",
    "fewer_flops": "fewer FLOPs",
    "work_beside_the_stream": "work beside the stream",
    "returns_nothing": "returns nothing",
    "just_above_roof": "{ratio:.0%} of its roof",
    "tolerance_capped": "tolerance widened",
    "null_answer_passes": "{answer} would pass",
    "check_not_recorded": "outputs not compared",
    "check_not_made": "outputs not compared",
}
"""The same in a few words, for the line with a grade."""
