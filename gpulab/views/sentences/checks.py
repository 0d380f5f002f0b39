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


def _in_case(values: Values) -> str:
    if values["fails"]:
        return f"it fails in the case {values['case']}, and the baseline does not"
    differs = _relative_error(values) if values["allowed"] else "its elements are not the baseline's"
    return f"in the case {values['case']}: {differs}"


def _timed_step(values: Values) -> str:
    changed = f"after new values in its inputs ({values['change']})" if values["change"] else "in between"
    return f"in a timed block, {changed}: {_relative_error(values)}"


WORDS = {
    "declared_unchecked": Words("unchecked: {reason}"),
    "output_is_its_input": Words("its output is memory of its inputs, where the baseline writes one of its own"),
    "output_wobbles": Words(
        "its output changed once and no more by step {step}: state that moves changes every output, so name it, "
        "or compute the same in each step"
    ),
    "output_computes_when_read": Words(
        "its output is computed when it is read, after the clock: it follows changed inputs without another step"
    ),
    "output_takes_the_time": Words(
        "reading its output takes {output_s:seconds} and a step {step_s:seconds}, the baseline's {baseline_s:seconds}: "
        "work was moved from the step to output="
    ),
    "computes_when_read": Words(
        "its output is a {kind}, a class of its own that may compute when it is read: return a plain tensor or array"
    ),
    "tolerance_capped": Words("tolerance={declared:g} is more than may be named: checked to {cap:.0e}"),
    "null_answer_passes": Words(
        "the check proves nothing: {answer} would pass for its output at a relative error of {allowed:.0e}"
    ),
    "timed_step_is_stale": Words(
        "in a timed block its output is that of the inputs before they changed ({change}): a result was remembered"
    ),
    "timed_step_is_wrong": Words(_timed_step),
    "state_not_updated": Words(
        "its steps leave tensor {tensor} of {tensors} of its state as it was, and the baseline's change it"
    ),
    "state_differs": Words("its steps change its state otherwise: relative error {error:.2g}, allowed {allowed:g}"),
    "remembers_its_inputs": Words(
        "a step takes {ratio:.3g} times as long once its inputs have new values (the baseline's {baseline:.2g}): "
        "it remembers results"
    ),
    "computes_when_waited_for": Words(
        "a step alone, after a pause, takes {ratio:.3g} times as long as one in a timed block (the baseline's "
        "{baseline:.2g}): most of the timed ones return what another one computed"
    ),
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
        "its output does not follow input {input} of {inputs}, whose values another seed changes: was it computed, or "
        "copied, in the build?"
    ),
    "inputs_incomplete": Words(
        "with the values of another seed copied into its inputs its output is another than the baseline's (relative "
        "error {error:.2g}), and its own build with that seed is right: name all tensors that depend on the data"
    ),
    "seed_changes_nothing": Words(
        "another seed gives its inputs the same values, so a result computed in the build would go unnoticed: draw "
        "them at random"
    ),
    "inputs_not_from_the_seed": Words(
        "another seed changes the baseline's inputs and leaves its own as they were: name what the step reads"
    ),
    "gpu_is_shared": Words("other processes use the GPU: its clock cannot be held against the host's"),
    "computes_in_some_steps": Words(
        "its profile holds {products:.2g} products a step, the baseline's {baseline:.2g}: most steps do not compute"
    ),
    "seed_changes_shapes": Words(
        "another seed gives its inputs other shapes, so a result computed in the build could go unnoticed"
    ),
    "unnamed_tensors": Words(
        "it reads {count:count tensor|tensors} ({bytes:bytes}) with values of the seed that neither its inputs= nor "
        "the baseline has: what a build computes is not timed"
    ),
    "layout_made_in_build": Words(
        "its inputs hold the data in another form than the baseline's: bringing them into it is done in the build, and "
        "is not timed"
    ),
    "input_without_effect": Words(
        "other values in input {input} of {inputs} change the baseline's output, and not its own"
    ),
    "draws_when_seeded": Words(
        "only the first step after the generators were seeded draws random numbers; the others use them again"
    ),
    "tolerance_widened": Words("tolerance={declared:g} allows more than its dtypes do ({usual:.0e})"),
    "norm_in_few_elements": Words(
        "a few elements are over {times:.0e} times the others, and these differ by {error:.2g} (allowed {allowed:.0e})"
    ),
    "gradients_not_left": Words(
        "its steps leave {count:count gradient|gradients} in .grad, those of the baseline {baseline}"
    ),
    "gradient_differs": Words("gradient {tensor} of {tensors} that its steps leave in .grad is not the baseline's"),
    "wrong_in_case": Words(_in_case),
    "part_not_computed": Words("a part of its output is one and the same value, where the baseline's differ"),
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
