"""Findings of the checks of variants: values as they are given where each is made, and what each
says.
"""

EXAMPLES = {
    "inputs_not_named": (
        {},
        "it names no inputs where the baseline does, so a stale result would go unnoticed",
    ),
    "changes_inputs": ({}, "the step changes its inputs: name them as state, or write elsewhere"),
    "does_not_write_its_output": (
        {},
        "the step does not write all of its output: poisoned values came back",
    ),
    "baseline_not_finite": ({}, "the baseline's own output holds NaN or infinity"),
    "baseline_is_zeros": ({}, "the baseline's output is all zeros: the check proves little"),
    "output_ignores_change": (
        {},
        "its output does not follow a change of its inputs, so a result computed in the build "
        "would go unnoticed",
    ),
    "no_inputs_named": (
        {},
        "names no inputs, so a result computed in the build would go unnoticed",
    ),
    "ignores_its_inputs": (
        {"input": 2, "inputs": 3},
        "its output does not follow input 2 of 3, whose values another seed changes: was it "
        "computed, or copied, in the build?",
    ),
    "inputs_incomplete": (
        {"error": 1.414},
        "with the values of another seed copied into its inputs its output is another than the "
        "baseline's (relative error 1.4), and its own build with that seed is right: name all "
        "tensors that depend on the data",
    ),
    "seed_changes_nothing": (
        {},
        "another seed gives its inputs the same values, so a result computed in the build would "
        "go unnoticed: draw them at random",
    ),
    "inputs_not_from_the_seed": (
        {},
        "another seed changes the baseline's inputs and leaves its own as they were: name what "
        "the step reads",
    ),
    "seed_changes_shapes": (
        {},
        "another seed gives its inputs other shapes, so a result computed in the build could go "
        "unnoticed",
    ),
    "unnamed_tensors": (
        {"count": 1, "bytes": 16384},
        "it reads 1 tensor (16.0 KiB) with values of the seed that neither its inputs= nor the "
        "baseline has: what a build computes is not timed",
    ),
    "layout_made_in_build": (
        {},
        "its inputs hold the data in another form than the baseline's: bringing them into it is "
        "done in the build, and is not timed",
    ),
    "input_without_effect": (
        {"input": 2, "inputs": 3},
        "other values in input 2 of 3 change the baseline's output, and not its own",
    ),
    "wrong_in_case": (
        {"case": "nan", "fails": False, "error": 0.5, "allowed": 1e-4},
        "in the case nan: relative error 0.5, allowed 1e-04",
    ),
    "draws_when_seeded": (
        {},
        "only the first step after the generators were seeded draws random numbers; the others "
        "use them again",
    ),
    "gradients_not_left": (
        {"count": 1, "baseline": 2},
        "its steps leave 1 gradient in .grad, those of the baseline 2",
    ),
    "gradient_differs": (
        {"tensor": 1, "tensors": 2, "error": 1.0},
        "gradient 1 of 2 that its steps leave in .grad is not the baseline's",
    ),
    "element_counts_differ": (
        {"elements": 9, "baseline": 3},
        "the output has 9 elements, the baseline's 3",
    ),
    "elements_differ": ({"differ": 3, "elements": 9}, "3 of 9 elements differ"),
    "output_has_nan": ({}, "the output holds NaN where the baseline's does not"),
    "output_is_its_input": (
        {},
        "its output is memory of its inputs, where the baseline writes one of its own",
    ),
    "output_computes_when_read": (
        {},
        "its output is computed when it is read, after the clock: it follows changed inputs "
        "without another step",
    ),
    "gpu_is_shared": (
        {},
        "other processes use the GPU: its clock cannot be held against the host's",
    ),
    "computes_in_some_steps": (
        {"products": 0.005, "baseline": 1.0},
        "its profile holds 0.005 products a step, the baseline's 1: most steps do not compute",
    ),
    "output_takes_the_time": (
        {"output_s": 2e-3, "step_s": 1e-5, "baseline_s": 2e-3},
        "reading its output takes 2.00 ms and a step 10.0 µs, the baseline's 2.00 ms: work was "
        "moved from the step to output=",
    ),
    "computes_when_read": (
        {"kind": "Lazy"},
        "its output is a Lazy, a class of its own that may compute when it is read: return a "
        "plain tensor or array",
    ),
    "tolerance_widened": (
        {"declared": 5e-4, "usual": 1e-4},
        "tolerance=0.0005 allows more than its dtypes do (1e-04)",
    ),
    "norm_in_few_elements": (
        {"times": 1e5, "error": 0.25, "allowed": 1e-3},
        "a few elements are over 1e+05 times the others, and these differ by 0.25 (allowed 1e-03)",
    ),
    "part_not_computed": (
        {"size": 2e-4, "rms": 0.1},
        "a part of its output is one and the same value, where the baseline's differ",
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
        {"change": "a few elements"},
        "in a timed block its output is that of the inputs before they changed (a few elements): "
        "a result was remembered",
    ),
    "timed_step_is_wrong": (
        {"error": None, "allowed": 1e-4, "change": "another seed"},
        "in a timed block, after new values in its inputs (another seed): relative error "
        "unbounded, allowed 1e-04",
    ),
    "computes_when_waited_for": (
        {"ratio": 14.2, "baseline": 1.02},
        "a step alone, after a pause, takes 14.2 times as long as one in a timed block (the "
        "baseline's 1): most of the timed ones return what another one computed",
    ),
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
        "a step takes 14.2 times as long once its inputs have new values (the baseline's 1): it "
        "remembers results",
    ),
    "relative_error": ({"error": 0.0234, "allowed": 0.0001}, "relative error 0.023, allowed 1e-04"),
    "one_element_off": (
        {"largest": 0.0234, "allowed": 0.001},
        "one element is off by 0.023, allowed 0.001",
    ),
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
        "other threads or processes of it are busy while nothing is timed (61% of a CPU): let "
        "them rest between steps",
    ),
    "streams_not_joined": (
        {"count": 1},
        "the profile holds work on 1 stream that nothing waits for: join side streams in the step",
    ),
    "state_not_restored": (
        {"output": 2, "outputs": 3, "error": 0.5},
        (
            "output 2 of 3 still changes from step to step although Work(state=...) is restored: "
            "something else moves on, such as a data loader's iterator or a random generator; "
            "checked on fresh builds instead"
        ),
    ),
    "state_not_named": (
        {"output": 1, "outputs": 1, "error": 0.5},
        (
            "its output changes from step to step: name what a step changes in Work(state=...), "
            "or draw its data before the step, to have all checks"
        ),
    ),
    "set_while_building": (
        {"settings": ["torch.set_num_threads", "torch.x"]},
        "torch.set_num_threads, torch.x: set while building; it belongs in Work(context=...)",
    ),
    "set_while_stepping": (
        {"settings": ["torch.x"]},
        "torch.x: set while stepping; it belongs in Work(context=...)",
    ),
    "left_by_context": (
        {"settings": ["torch.x"]},
        "torch.x: not restored by the context of its Work",
    ),
}
