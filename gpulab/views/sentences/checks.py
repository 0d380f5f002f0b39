"""What is said of the checks of a variant: of its output, its inputs and state, its settings."""

from __future__ import annotations

from gpulab.views.sentences.words import Values, Words


def _which_output(values: Values) -> str:
    return "its output" if values["outputs"] == 1 else f"output {values['output']} of {values['outputs']}"


def _state_not_restored(values: Values) -> str:
    return (
        f"{_which_output(values)} still changes from step to step although Work(state=...) is restored: something else "
        "moves on, such as a data loader's iterator or a random generator; checked on fresh builds instead"
    )


def _state_not_named(values: Values) -> str:
    return (
        f"{_which_output(values)} changes from step to step: name what a step changes in Work(state=...), "
        "or draw its data before the step, to have all checks"
    )


def _relative_error(values: Values) -> str:
    error = values["error"]
    return f"relative error {'unbounded' if error is None else f'{error:.2g}'}, allowed {values['allowed']:.0e}"


WORDS = {
    "declared_unchecked": Words("unchecked: {reason}"),
    "returns_nothing": Words("unchecked: the step returns nothing; return its output, or name Work(output=...)"),
    "inputs_not_named": Words("it names no inputs where the baseline does, so a stale result would go unnoticed"),
    "changes_inputs": Words("the step changes its inputs: name them as state, or write elsewhere"),
    "state_not_restored": Words(_state_not_restored),
    "state_not_named": Words(_state_not_named),
    "does_not_write_its_output": Words("the step does not write all of its output: poisoned values came back"),
    "baseline_not_finite": Words("the baseline's own output holds NaN or infinity"),
    "baseline_is_zeros": Words("the baseline's output is all zeros: the check proves little"),
    "output_ignores_change": Words(
        "its output does not follow a change of its inputs, so a result computed in the build would go unnoticed"
    ),
    "no_inputs_named": Words("names no inputs, so a result computed in the build would go unnoticed"),
    "ignores_its_inputs": Words(
        "with other values in the inputs: the output does not follow its inputs: computed in the build?"
    ),
    "element_counts_differ": Words("the output has {elements} elements, the baseline's {baseline}"),
    "elements_differ": Words("{differ} of {elements} elements differ"),
    "output_has_nan": Words("the output holds NaN where the baseline's does not"),
    "relative_error": Words(_relative_error),
    "one_element_off": Words("one element is off by {largest:.2g}, allowed {allowed:.1g}"),
    "lower_precision": Words(
        "computes in lower precision: checked to a relative error of {allowed:.0e}, not {baseline:.0e}",
        "compute in lower precision, checked to a larger relative error:",
        "{allowed:.0e} (baseline {baseline:.0e})",
    ),
    "set_while_building": Words("{settings}: set while building; it belongs in Work(context=...)"),
    "set_while_stepping": Words("{settings}: set while stepping; it belongs in Work(context=...)"),
    "left_by_context": Words("{settings}: not restored by the context of its Work"),
    "items_differ": Words(
        "it does {items:g} items a step and the baseline {baseline:g}: do equal work, or compare per item with "
        "Scenario(per='item') and name the part to check as output="
    ),
    "skipped_by_variant": Words("{reason}"),
    "smaller_did_not_fit": Words("{smaller} did not fit into memory, and this one needs more"),
}
