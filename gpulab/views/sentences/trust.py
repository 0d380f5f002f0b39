"""What is said of the checks that a result rests on: what each showed, why one did not run, what casts doubt."""

from __future__ import annotations

from collections.abc import Mapping
from math import isclose

from gpulab.views.sentences.words import Template, Values, Words
from gpulab.views.text import plural, rate, span, times

_ALIKE = 0.01
_NAMED = ("count", "error", "allowed", "variant")
_MANY = 10_000


def _number(value: object) -> str:
    return f"{value:.2g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else "unknown"


def _amount(value: float) -> str:
    return f"{value:g}" if value < _MANY else rate(value)


def _error(values: Values) -> str:
    if "error" not in values:
        return ""
    allowed = f" (allowed {_number(values['allowed'])})" if values.get("allowed") is not None else ""
    if values["error"] is None:
        return "equal"
    return f"largest error {_number(values['error'])}{allowed}"


def _others(values: Values) -> list[str]:
    """Numbers that a check adds: under their own names."""
    rest = {name: value for name, value in values.items() if name not in _NAMED and value not in (None, False)}
    shown = {
        name.replace("_", " "): ", ".join(map(str, value)) if isinstance(value, list) else value
        for name, value in rest.items()
    }
    return [
        name if value is True else f"{name} {value:,.4g}" if isinstance(value, (int, float)) else f"{name} {value}"
        for name, value in shown.items()
    ]


def _ran(noun: str, several: str) -> Template:
    """How many of what were looked at, how far off the worst was, and whatever numbers the check adds."""

    def sentence(values: Values) -> str:
        count = values.get("count")
        counted = "" if count is None else f"{count:,} {noun if count == 1 else several}"
        return ", ".join(filter(None, [counted, _error(values), *_others(values)]))

    return sentence


def _outputs(values: Values) -> str:
    return ", ".join(filter(None, [_error(values), *_others(values)])) or "equal"


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
    own = {
        "count",
        "items",
        "baseline_items",
        "operations",
        "baseline_operations",
        "flops",
        "baseline_flops",
        "declared_flops",
    }
    return "; ".join([*parts, *_others({name: value for name, value in values.items() if name not in own})])


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
    "timed_steps_checked": Words(_ran("block checked", "blocks checked")),
    "inputs_compared": Words(_ran("tensor compared", "tensors compared")),
    "null_answers_refused": Words(_ran("wrong answer refused", "wrong answers refused")),
    "steps_repeated": Words(_ran("repetition agrees", "repetitions agree")),
    "work_counted": Words(_work),
    "rate_below_roof": Words(_ran("roof compared", "roofs compared")),
    "nothing_left_running": Words(_ran("look", "looks")),
    "context_and_output_watched": Words(_ran("look", "looks")),
    "timer_bracketed": Words(_ran("stretch timed from outside", "stretches timed from outside")),
    "outputs_compared_outside": Words(_ran("output compared", "outputs compared")),
    "control_measured": Words(_control),
    "processes_measured": Words(_processes),
    "contention_measured": Words(_contention),
    "clocks_watched": Words(_clocks),
    "control_inconclusive": Words("the control is inconclusive: {low:times} to {high:times}"),
    "measured_in_one_process": Words("one process: another one, or another hour, may give another ratio"),
    "few_processes": Words("{count:count process|processes}: an interval needs {needed}"),
    "processes_correlated": Words("successive processes are alike (correlation {correlation:.2f}): it drifts"),
    "contention_of_threads": Words("measured with one thread only"),
    "clocks_of_cpu": Words("a CPU does not report what holds its clocks back"),
    "telemetry_off": Words("telemetry is off"),
    "check_not_recorded": Words("not recorded in this run file"),
    "check_ended_before": Words("the run ended before it"),
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
    "output_ignores_change": "output does not follow its inputs",
    "baseline_is_zeros": "output all zeros",
    "work_beside_the_stream": "work beside the stream",
    "returns_nothing": "returns nothing",
}
"""The same in a few words, for the line with a grade."""
