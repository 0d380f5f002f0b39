"""What is said of the checks that a result rests on: what each showed, why one did not run, what casts doubt."""

from __future__ import annotations

from collections.abc import Mapping
from math import isclose

from gpulab.views.sentences.words import Values, Words
from gpulab.views.text import plural, rate, seconds, span, times

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
    return "" if inputs is None else f"the output follows other values of {plural(inputs, 'tensor')}"


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
    after = "" if left is None else f"{seconds(left)} of work after a step" if left else "no work after a step"
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
        compared = ", as the baseline" if operations == before else f", the baseline {before:,}" if before else ""
        parts.append(f"{plural(operations, 'operation')}{compared}")
    parts += _flops(values)
    return "; ".join(parts)


def _flops(values: Values) -> list[str]:
    flops, before, declared = (values.get(name) for name in ("flops", "baseline_flops", "declared_flops"))
    if not flops:
        return []
    beside = f", declared {rate(declared)}" if declared and not isclose(declared, flops, rel_tol=_ALIKE) else ""
    compared = f", the baseline {rate(before)}" if before and not isclose(before, flops, rel_tol=_ALIKE) else ""
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
    parts = [f"off the CPU for {share:.1%}", f"{faults:,.0f} page faults a step" if faults >= 1 else ""]
    parts.append(f"{switches:.2g} preemptions a block" if switches else "")
    return ", ".join(filter(None, parts))


def _clocks(values: Values) -> str:
    capped, readings = values.get("capped"), values.get("readings")
    return f"no slowdown in {readings} readings{f', power cap in {capped}' if capped else ''}"


WORDS = {
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
        "{alone:times} as the first of {count:count process|processes}, {interleaved:times} among others"
    ),
    "variants_influence": Words(
        "variants influence each other: {interleaved:times} among the others, {alone:times} where no other was built"
    ),
    "fails_alone": Words("it fails where no other variant was built: {message}"),
    "baseline_slowed": Words(
        "variants influence each other: a step of the baseline takes {later_s:seconds}, and {before_s:seconds} before "
        "the others were built"
    ),
    "control_measured": Words(_control),
    "processes_measured": Words(_processes),
    "contention_measured": Words(_contention),
    "clocks_watched": Words(_clocks),
    "fewer_flops": Words(
        "{flops:.3g} FLOP per item counted, {baseline:.3g} of the baseline: less work, or another algorithm"
    ),
    "control_inconclusive": Words("the control is inconclusive: {low:times} to {high:times}"),
    "measured_in_one_process": Words("one process: another one, or another hour, may give another ratio"),
    "few_processes": Words("{count:count process|processes}: an interval needs {needed}"),
    "processes_correlated": Words("successive processes are alike (correlation {correlation:.2f}): it drifts"),
    "contention_of_threads": Words("measured with one thread only"),
    "clocks_of_cpu": Words("a CPU does not report what holds its clocks back"),
    "telemetry_off": Words("telemetry is off"),
    "check_not_recorded": Words("not recorded in this run file"),
    "check_not_made": Words("not made in this run"),
    "just_above_roof": Words("{ratio:.0%} of what was measured ({roof}): more than a step should reach"),
    "checks_not_run": Words("not checked: {checks}"),
    "failed_after": Words("it failed after {count} {unit}; their pairs are kept"),
    "power_cap_alone": Words("alone each is held at the power cap; interleaved, they share it"),
    "differs_alone": Words("alone, its steps take another time than among the others"),
    "sustained_contradicts": Words(
        "{interleaved:times} when interleaved and {sustained:times} alone: it depends on what runs beside it"
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
