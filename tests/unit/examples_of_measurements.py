"""Findings about a run, with values as they are given where each is made, and what each says."""

AS_BEFORE = {
    "ended_before": ({}, "not measured: the run ended before it"),
    "pairs_dropped": ({"dropped": 36, "pairs": 40}, "36 of 40 pairs dropped"),
    "too_few_values": (
        {"count": 7, "unit": "epochs", "needed": 8},
        "7 epochs: a 99 % interval needs 8",
    ),
    "plain_function": ({}, "a plain function: nothing to compare it with"),
    "plain_functions": (
        {},
        "plain functions: nothing is checked and nothing compared, so no speedup is claimed",
    ),
    "warm_up_drifts": ({"drift": 0.041}, "still drifting by 4.1% when its warm-up ended"),
    "off_the_cpu": (
        {"share": 0.476},
        "off the CPU for 48% of its time: a busy machine, or a step that waits",
    ),
    "ran_one_at_a_time": ({}, "the variants do not fit into memory together: each ran alone"),
    "gaps_in_device_time": (
        {},
        "gaps between launches are in its device time: it waits for the device, or launches more "
        "than a queue holds",
    ),
    "first_step_sets_up": (
        {"first_step_s": 3.06},
        "its first step, which compiles or sets up, took 3.06 s, apart from these times",
    ),
    "page_faults": (
        {"faults": 65536.4, "bytes": 268437094.4},
        "65,536 page faults a step: 256 MiB of memory touched for the first time",
    ),
    "run_file_cut": (
        {"message": "[Errno 28] No space left on device"},
        "the run file ends here: [Errno 28] No space left on device",
    ),
    "items_differ": (
        {"items": 2.0, "baseline": 1.0},
        (
            "it does 2 items a step and the baseline 1: do equal work, or compare per item with "
            "Scenario(per='item') and name the part to check as output="
        ),
    ),
    "skipped_by_variant": ({"reason": "no bits"}, "no bits"),
    "smaller_did_not_fit": (
        {"smaller": "large"},
        "large did not fit into memory, and this one needs more",
    ),
    "exception": ({"message": "ValueError: boom"}, "ValueError: boom"),
    "file_unreadable": (
        {
            "file": "x.py",
            "line": 2,
            "message": "a second Scenario",
            "fix": "keep one Scenario in a file",
        },
        "x.py, line 2: a second Scenario; keep one Scenario in a file",
    ),
    "no_scenario": ({"file": "x.py"}, "x.py has no Scenario"),
    "device_in_error": (
        {"message": "CUDA error: an illegal access"},
        "the device is in error, and so is every later measurement of this process: CUDA error: "
        "an illegal access",
    ),
    "cancelled": ({}, "stopped by the user"),
    "crashed": (
        {"signal": "SIGSEGV", "meaning": "Segmentation fault"},
        "the worker crashed: SIGSEGV (Segmentation fault)",
    ),
    "event_pipe_closed": (
        {},
        "the scenario closed the lab's event pipe: leave file descriptors alone that you did not "
        "open",
    ),
    "worker_exited": (
        {"code": 7},
        "the worker's process ended with exit code 7: os._exit, or a native library's exit",
    ),
    "worker_not_run": ({"message": "no memory"}, "the worker could not be run: no memory"),
    "profiling_device_in_error": ({}, "the device is in error: nothing more could be profiled"),
    "memory_snapshot": (
        {"file": "run-a.pickle"},
        "a snapshot of the device's memory: run-a.pickle (pytorch.org/memory_viz)",
    ),
    "kernels_not_read": (
        {"message": "the assembler said nothing of copy"},
        "what the compiler made of its kernels could not be read: the assembler said nothing of "
        "copy",
    ),
    "trace_not_written": (
        {"file": "t.json", "message": "Permission denied"},
        "the trace could not be written to t.json: Permission denied",
    ),
    "trace_is_no_list": (
        {"file": "t.json"},
        "t.json: a viewer may not draw all of it: traceEvents is not a list",
    ),
    "device_not_recorded": ({}, "nothing was recorded of the device: this is the host's time"),
    "recordings_differ": (
        {},
        "two recordings hold different operations: the step goodput is unreliable",
    ),
}
"""Code to values and sentence: the sentence that the lab said before findings had codes."""
REWORDED = {
    "hides_another": (
        {"file": "scenarios/x.py", "hidden": "gpulab/scenarios/x.py", "lesson": True},
        "this is scenarios/x.py, which hides the shipped lesson of this name, "
        "gpulab/scenarios/x.py",
    ),
    "never_started": ({}, "the run has not started"),
    "no_end": ({}, "the run has no end: its process was killed, or it is still running"),
    "stopped_after_measuring": ({}, "the measurement is complete; what follows it was stopped"),
    "stopped_while_measuring": (
        {},
        "stopped while measuring: what was measured before is in the run file",
    ),
    "baseline_skipped": (
        {"cause": "skipped_by_variant", "reason": "no bits"},
        "the baseline was skipped, so nothing was measured: no bits",
    ),
    "control_differs": (
        {"verdict": "faster", "speedup": 1.2},
        "the control, a second build of the baseline, came out faster (1.20x): measure again",
    ),
    "nothing_compared": (
        {"required": 1.2},
        "--fail-below requires a comparison, and nothing is compared",
    ),
    "below_required": ({"required": 1.2}, "the interval of v lies below the required 1.2x"),
    "exercise_unchecked": ({}, "v is unchecked: an exercise asks for a result that was compared"),
    "not_shown_to_reach": ({"required": 1.2}, "v is inconclusive against the required 1.2x"),
    "overlaps_equivalence_margin": (
        {"largest": 0.023},
        "the interval is narrow, and overlaps the equivalence margin: an effect of at most 2.3%",
    ),
    "below_minimum_detectable_effect": (
        {"mde": 0.0325},
        "below the minimum detectable effect of 3.2%: give it more --time, or a quieter machine",
    ),
    "builds_differ": (
        {"speedup": 1.25},
        "two builds of the first function differ: 1.25x; times of single builds vary by as much",
    ),
    "solo_run_differs": (
        {"change": -0.038, "seconds": 2.01},
        "in a solo run of 2 s a step took 3.8% less than when interleaved",
    ),
    "same_operations": (
        {"against": "reference"},
        "it runs the same operations as reference, on operands of the same shapes",
    ),
    "no_effect": (
        {"reason": "the allocator keeps its blocks"},
        "no effect here: the allocator keeps its blocks",
    ),
    "fixes_overlap": (
        {"product": 3.43, "speedup": 3.19, "low": 3.08, "high": 3.38},
        (
            "product of the individual speedups 3.43x, all fixes together 3.19x (3.08 to 3.38): "
            "some shorten the same part of the step, and a part can be removed only once"
        ),
    ),
    "fixes_compound": (
        {"product": 3.43, "speedup": 5.0, "low": 4.9, "high": 5.1},
        (
            "product of the individual speedups 3.43x, all fixes together 5.00x (4.90 to 5.10): "
            "of what one fix leaves, the part of the next is a larger share (Amdahl)"
        ),
    ),
    "fixes_multiply": (
        {"product": 3.43, "speedup": 3.4, "low": None, "high": None},
        "product of the individual speedups 3.43x, all fixes together 3.40x (3.40 to 3.40): as "
        "much as the product",
    ),
    "garbled_lines": (
        {"lines": ["3", "17"]},
        "lines of the run file that cannot be read were skipped: 3, 17",
    ),
    "unknown_events": ({"count": 1}, "1 event of unknown types skipped: written by another gpulab"),
    "declared_unchecked": ({"reason": "it is random"}, "unchecked: it is random"),
    "returns_nothing": (
        {},
        "unchecked: the step returns nothing; return its output, or name Work(output=...)",
    ),
    "takes_arguments": (
        {"arguments": ["x", "y"]},
        "it takes arguments (x, y), and is called with none: wrap it, or give defaults",
    ),
    "timeout": ({"timeout_s": 6.0}, "no end after 6 s: raise --timeout, or fix the hang"),
    "checked_in_its_own_run": (
        {},
        "checked in its own run: with another parameter it has another output",
    ),
    "too_few_runs": ({"runs": 7, "needed": 8}, "7 runs: a 99 % interval over runs needs 8"),
    "outside_earlier_runs": (
        {"speedup": 1.904, "runs": 6, "low": 1.52, "high": 1.69},
        "1.90x lies outside of 6 earlier runs here (1.52x to 1.69x): measure again, and look for "
        "what changed on this machine",
    ),
    "no_progress": (
        {"silence_s": 600.0, "during": "build compiled"},
        "no progress for 600 s (build compiled): fix the hang, or set --timeout if it is only slow",
    ),
    "overdue": (
        {"expected_s": 1000.0, "taken_s": 4300.4},
        "no end after 4300 s, where 1000 s were expected: fix the hang, or set --timeout if it "
        "is only slow",
    ),
    "killed": (
        {},
        "killed: by the system for want of memory, by a limit such as ulimit -t, or by somebody",
    ),
    "cpu_time_spent": ({}, "the worker used up its CPU time: raise the limit (ulimit -t)"),
    "lab_functions_replaced": (
        {"names": ["gpulab.features.checks.worker.Checker.after", "time.perf_counter"], "count": 2},
        "the scenario replaced 2 functions that the lab measures or checks with: "
        "gpulab.features.checks.worker.Checker.after, time.perf_counter",
    ),
    "events_lost": (
        {"count": 2},
        "2 events of the measurement lost, or a number forged: did the scenario write to the "
        "lab's event pipe?",
    ),
    "events_forged": (
        {"count": 32},
        "32 events came that the worker never sent: the scenario wrote to the lab's event pipe",
    ),
    "events_unconfirmed": (
        {"count": 32},
        "the supervisor ended before it could say that 32 events are the worker's own",
    ),
    "event_repeated": (
        {"number": 7},
        "event 7 of the worker came twice, and only one of them is the lab's: the scenario wrote "
        "to the lab's event pipe",
    ),
    "event_after_end": (
        {},
        "events came after the worker's last one: the scenario wrote to the lab's event pipe",
    ),
    "event_not_allowed": (
        {"type": "RunEnded"},
        "an event came that no worker of this job sends (RunEnded): the scenario wrote to the "
        "lab's event pipe",
    ),
    "events_make_no_sense": (
        {"message": "KeyError: 'x'"},
        "the events of this run make no sense together, and none is believed: KeyError: 'x'",
    ),
    "supervisor_gone": ({}, "the supervisor exited without a status"),
    "processes_left_running": ({"count": 1}, "the scenario left 1 process running; terminated"),
    "malformed_event_lines": ({"count": 1200}, "1,200 malformed event lines ignored"),
    "profiling_ended": (
        {"cause": "timeout", "timeout_s": 6.0},
        "profiling failed: no end after 6 s: raise --timeout, or fix the hang",
    ),
    "profiling_failed": ({"message": "boom"}, "profiling failed: boom"),
    "profiling_variant_failed": ({"message": "boom"}, "profiling failed: boom"),
    "phases_failed": ({"message": "boom"}, "its phases could not be recorded: boom"),
    "trace_events_lack_a_field": (
        {"file": "t.json", "field": "ts", "count": 3, "events": 9, "first": 4},
        "t.json: a viewer may not draw all of it: ts is missing or impossible in 3 of 9 events, "
        "the first is 4",
    ),
    "profiler_overhead": (
        {"overhead": 0.47},
        "profiling slowed this step by 47%: corrected for, but how the idle parts divide is "
        "approximate",
    ),
    "busy_exceeds_step": (
        {"busy_s": 16.4e-3, "step_s": 13e-3},
        "its recorded kernels and copies take 16.4 ms, its step without the profiler 13.0 ms: "
        "the step goodput is unreliable",
    ),
    "goodput_uncertain": (
        {"goodput": 0.68, "other": 0.6, "by": "solo run"},
        "step goodput is 68%, or 60% of the step in the solo run: unreliable",
    ),
}
"""The same of sentences that are new, or have other words than before."""
