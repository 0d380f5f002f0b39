"""Findings of the checks of variants: values as they are given where each is made, and what each says."""

EXAMPLES = {
    "inputs_not_named": ({}, "it names no inputs where the baseline does, so a stale result would go unnoticed"),
    "changes_inputs": ({}, "the step changes its inputs: name them as state, or write elsewhere"),
    "does_not_write_its_output": ({}, "the step does not write all of its output: poisoned values came back"),
    "baseline_not_finite": ({}, "the baseline's own output holds NaN or infinity"),
    "baseline_is_zeros": ({}, "the baseline's output is all zeros: the check proves little"),
    "output_ignores_change": (
        {},
        "its output does not follow a change of its inputs, so a result computed in the build would go unnoticed",
    ),
    "no_inputs_named": ({}, "names no inputs, so a result computed in the build would go unnoticed"),
    "ignores_its_inputs": (
        {},
        "with other values in the inputs: the output does not follow its inputs: computed in the build?",
    ),
    "element_counts_differ": ({"elements": 9, "baseline": 3}, "the output has 9 elements, the baseline's 3"),
    "elements_differ": ({"differ": 3, "elements": 9}, "3 of 9 elements differ"),
    "output_has_nan": ({}, "the output holds NaN where the baseline's does not"),
    "inputs_not_matched": (
        {"missing": 1, "inputs": 3},
        "1 of the baseline's 3 inputs have no counterpart of the same values among its own: only changes that need "
        "none were tried",
    ),
    "inputs_differ": (
        {"input": 2, "inputs": 3},
        "input 2 of 3 holds other values than the baseline's there: draw the same, or name what both read",
    ),
    "inputs_too_small": (
        {"elements": 2, "baseline": 8192},
        "its inputs hold 2 elements, the baseline's 8,192: name all that the step reads",
    ),
    "output_is_its_input": ({}, "its output is memory of its inputs, where the baseline writes one of its own"),
    "output_wobbles": (
        {"step": 3},
        "its output changed once and no more by step 3: state that moves changes every output, so name it, "
        "or compute the same in each step",
    ),
    "depends_on_fresh_memory": ({}, "its output depends on what fresh memory happens to hold"),
    "context_computes": ({}, "its context computes: inputs that change once it is entered have no effect"),
    "output_computes_when_read": (
        {},
        "its output is computed when it is read, after the clock: it follows changed inputs without another step",
    ),
    "output_takes_the_time": (
        {"output_s": 2e-3, "step_s": 1e-5, "baseline_s": 2e-3},
        "reading its output takes 2.00 ms and a step 10.0 µs, the baseline's 2.00 ms: work was moved from the step to "
        "output=",
    ),
    "computes_when_read": (
        {"kind": "Lazy"},
        "its output is a Lazy, a class of its own that may compute when it is read: return a plain tensor or array",
    ),
    "tolerance_capped": (
        {"declared": 1.0, "cap": 1e-3},
        "tolerance=1 is more than may be named: checked to 1e-03",
    ),
    "null_answer_passes": (
        {"answer": "the mean", "allowed": 0.02},
        "the check proves nothing: the mean would pass for its output at a relative error of 2e-02",
    ),
    "timed_step_is_stale": (
        {"error": 0.5, "allowed": 1e-4, "change": "late element"},
        "in a timed block its output is that of the inputs before they changed (late element): a result was remembered",
    ),
    "timed_step_is_wrong": (
        {"error": None, "allowed": 1e-4, "change": "everything"},
        "in a timed block, after new values in its inputs (everything): relative error unbounded, allowed 1e-04",
    ),
    "computes_after_restore": ({}, "it computes only in the first step after its state was restored"),
    "state_not_updated": (
        {"tensor": 1, "tensors": 4},
        "its steps leave tensor 1 of 4 of its state as it was, and the baseline's change it",
    ),
    "state_differs": (
        {"error": 0.7, "allowed": 0.4},
        "its steps change its state otherwise: relative error 0.7, allowed 0.4",
    ),
    "remembers_its_inputs": (
        {"ratio": 14.2, "baseline": 1.02},
        "a step takes 14.2 times as long once its inputs have new values (the baseline's 1): it remembers results",
    ),
    "computes_when_waited_for": (
        {"ratio": 14.2, "baseline": 1.02},
        "a step that is waited for takes 14.2 times as long as one among others (the baseline's 1): "
        "most of the timed ones return what another one computed",
    ),
    "relative_error": ({"error": 0.0234, "allowed": 0.0001}, "relative error 0.023, allowed 1e-04"),
    "one_element_off": ({"largest": 0.0234, "allowed": 0.001}, "one element is off by 0.023, allowed 0.001"),
    "lower_precision": (
        {"allowed": 0.005, "baseline": 0.0001},
        "computes in lower precision: checked to a relative error of 5e-03, not 1e-04",
    ),
    "work_beside_the_stream": (
        {"host_s": 0.0025, "device_s": 0.00011},
        "2.50 ms on the host's clock, 110 µs on the device's: join side streams in the step",
    ),
    "work_after_the_step": (
        {"left_over_s": 0.00018, "time_s": 1.6e-05},
        "other threads or processes spent 180 µs of CPU time after steps of 16.0 µs had returned: "
        "wait for them in the step",
    ),
    "busy_between_steps": (
        {"share": 0.61},
        "other threads or processes of it are busy while nothing is timed (61% of a CPU): let them rest between steps",
    ),
    "streams_not_joined": (
        {"count": 1},
        "the profile holds work on 1 stream that nothing waits for: join side streams in the step",
    ),
    "clock_disagrees": (
        {"seen_s": 0.121, "claimed_s": 0.0605},
        "its steps took 121 ms by the clock of another process, and 60.5 ms by the worker's",
    ),
    "outputs_differ_outside": (
        {"error": 1.0, "allowed": 1e-4},
        "compared in another process, elements of its outputs are not the baseline's: relative error 1, allowed 1e-04",
    ),
    "state_not_restored": (
        {"output": 2, "outputs": 3, "error": 0.5},
        (
            "output 2 of 3 still changes from step to step although Work(state=...) is restored: something "
            "else moves on, such as a data loader's iterator or a random generator; checked on fresh builds "
            "instead"
        ),
    ),
    "state_not_named": (
        {"output": 1, "outputs": 1, "error": 0.5},
        (
            "its output changes from step to step: name what a step changes in Work(state=...), or draw its "
            "data before the step, to have all checks"
        ),
    ),
    "set_while_building": (
        {"settings": ["torch.set_num_threads", "torch.x"]},
        "torch.set_num_threads, torch.x: set while building; it belongs in Work(context=...)",
    ),
    "set_while_stepping": ({"settings": ["torch.x"]}, "torch.x: set while stepping; it belongs in Work(context=...)"),
    "left_by_context": ({"settings": ["torch.x"]}, "torch.x: not restored by the context of its Work"),
}
