"""What is said of a measurement, and of failures."""

from __future__ import annotations

from gpulab.core.units import span, times
from gpulab.draw.templates import Values, Words


def _hides_another(values: Values) -> str:
    hidden = "the shipped lesson of this name" if values["lesson"] else "another file of this name"
    return f"this is {values['file']}, which hides {hidden}, {values['hidden']}"


_OTHER_WAYS = {
    "second recording": "by the second recording",
    "solo run": "of the step in the solo run",
    "plain step": "of the step in the profiler's process",
    "profiled step": "of the step with the profiler",
    "overhead inside": "where recording takes its time inside of operations",
    "phases": "by the phases between the rounds",
}


def _two_ways(values: Values) -> str:
    way = _OTHER_WAYS.get(values["by"], f"by the {values['by']}")
    return f"{values['goodput']:.0%}, or {values['other']:.0%} {way}"


FAILURE_WORDS = {
    "exception": Words("{message}"),
    "file_unreadable": Words("{file}, line {line}: {message}; {fix}"),
    "no_scenario": Words("{file} has no Scenario"),
    "hides_another": Words(_hides_another),
    "takes_arguments": Words(
        "it takes arguments ({arguments}), and is called with none: wrap it, or give defaults"
    ),
    "device_in_error": Words(
        "the device is in error, and so is every later measurement of this process: {message}"
    ),
    "timeout": Words("no end after {timeout_s:g} s: raise --timeout, or fix the hang"),
    "no_progress": Words(
        "no progress for {silence_s:.0f} s ({during}): fix the hang, or set --timeout if it is "
        "only slow"
    ),
    "overdue": Words(
        "no end after {taken_s:.0f} s, where {expected_s:.0f} s were expected: fix the hang, or "
        "set --timeout if it is only slow"
    ),
    "cancelled": Words("stopped by the user"),
    "killed": Words(
        "killed: by the system for want of memory, by a limit such as ulimit -t, or by somebody"
    ),
    "cpu_time_spent": Words("the worker used up its CPU time: raise the limit (ulimit -t)"),
    "crashed": Words("the worker crashed: {signal} ({meaning})"),
    "event_pipe_closed": Words(
        "the scenario closed the lab's event pipe: leave file descriptors alone that you did not "
        "open"
    ),
    "worker_exited": Words(
        "the worker's process ended with exit code {code}: os._exit, or a native library's exit"
    ),
    "worker_not_run": Words("the worker could not be run: {message}"),
    "events_lost": Words(
        "{count:count event|events} of the measurement lost, or a number forged: did the "
        "scenario write to the lab's event pipe?"
    ),
    "events_forged": Words(
        "{count:count event|events} came that the worker never sent: the scenario wrote to the "
        "lab's event pipe"
    ),
    "events_unconfirmed": Words(
        "the supervisor ended before it could say that {count:count event is|events are} the "
        "worker's own"
    ),
    "event_repeated": Words(
        "event {number} of the worker came twice, and only one of them is the lab's: the "
        "scenario wrote to the lab's event pipe"
    ),
    "event_after_end": Words(
        "events came after the worker's last one: the scenario wrote to the lab's event pipe"
    ),
    "event_not_allowed": Words(
        "an event came that no worker of this job sends ({type}): the scenario wrote to the "
        "lab's event pipe"
    ),
    "events_make_no_sense": Words(
        "the events of this run make no sense together, and none is believed: {message}"
    ),
    "lab_functions_replaced": Words(
        "the scenario replaced {count:count function|functions} that the lab measures or checks "
        "with: {names}"
    ),
    "supervisor_gone": Words("the supervisor exited without a status"),
    "processes_left_running": Words(
        "the scenario left {count:count process|processes} running; terminated"
    ),
    "malformed_event_lines": Words(
        "{count:count malformed event line|malformed event lines} ignored"
    ),
    "profiling_ended": Words("profiling failed: {cause}"),
    "profiling_failed": Words("profiling failed: {message}"),
    "profiling_variant_failed": Words("profiling failed: {message}"),
    "profiling_device_in_error": Words("the device is in error: nothing more could be profiled"),
    "phases_failed": Words("its phases could not be recorded: {message}"),
    "kernels_not_read": Words("what the compiler made of its kernels could not be read: {message}"),
    "memory_snapshot": Words("a snapshot of the device's memory: {file} (pytorch.org/memory_viz)"),
    "trace_not_written": Words("the trace could not be written to {file}: {message}"),
    "trace_is_no_list": Words("{file}: a viewer may not draw all of it: traceEvents is not a list"),
    "trace_events_lack_a_field": Words(
        "{file}: a viewer may not draw all of it: {field} is missing or impossible in {count} of "
        "{events} events, the first is {first}"
    ),
    "device_not_recorded": Words("nothing was recorded of the device: this is the host's time"),
    "recordings_differ": Words(
        "two recordings hold different operations: the step goodput is unreliable"
    ),
    "busy_exceeds_step": Words(
        "its recorded kernels and copies take {busy_s:seconds}, its step without the profiler "
        "{step_s:seconds}: the step goodput is unreliable",
        "step goodput is unreliable where what was recorded takes longer than the step without "
        "the profiler:",
        "{busy_s:seconds} against {step_s:seconds}",
    ),
    "goodput_uncertain": Words(
        lambda values: f"step goodput is {_two_ways(values)}: unreliable",
        "step goodput is unreliable where another way to know it differs by more than 5 points:",
        _two_ways,
    ),
    "profiler_overhead": Words(
        "profiling slowed this step by {overhead:.0%}: corrected for, but how the idle parts "
        "divide is approximate",
        "profiling slowed a step (corrected for, but how the idle parts divide is approximate):",
        "by {overhead:.0%}",
    ),
}


def _together(explanation: str) -> Words:
    def sentence(values: Values) -> str:
        speedup = values["speedup"]
        ends = span(values["low"] or speedup, values["high"] or speedup)
        individual = f"product of the individual speedups {times(values['product'])}"
        return f"{individual}, all fixes together {times(speedup)} ({ends}): {explanation}"

    return Words(sentence)


def _solo_change(values: Values) -> str:
    change = values["change"]
    return f"{abs(change):.1%} {'longer' if change > 0 else 'less'}"


def _solo_differs(values: Values) -> str:
    return (
        f"in a solo run of {values['seconds']:.0f} s a step took {_solo_change(values)} than "
        "when interleaved"
    )


MEASUREMENT_WORDS = {
    "never_started": Words("the run has not started"),
    "no_end": Words("the run has no end: its process was killed, or it is still running"),
    "stopped_after_measuring": Words("the measurement is complete; what follows it was stopped"),
    "stopped_while_measuring": Words(
        "stopped while measuring: what was measured before is in the run file"
    ),
    "baseline_skipped": Words("the baseline was skipped, so nothing was measured: {cause}"),
    "control_differs": Words(
        "the control, a second build of the baseline, came out {verdict} ({speedup:times}): "
        "measure again"
    ),
    "nothing_compared": Words("--fail-below requires a comparison, and nothing is compared"),
    "below_required": Words("the interval of {variant} lies below the required {required:g}x"),
    "exercise_unchecked": Words(
        "{variant} is unchecked: an exercise asks for a result that was compared"
    ),
    "not_shown_to_reach": Words("{variant} is inconclusive against the required {required:g}x"),
    "checked_in_its_own_run": Words(
        "checked in its own run: with another parameter it has another output"
    ),
    "too_few_runs": Words("{runs:count run|runs}: a 99 % interval over runs needs {needed}"),
    "outside_earlier_runs": Words(
        "{speedup:times} lies outside of {runs} earlier runs here ({low:times} to {high:times}): "
        "measure again, and look for what changed on this machine"
    ),
    "ended_before": Words("not measured: the run ended before it"),
    "pairs_dropped": Words("{dropped} of {pairs} pairs dropped"),
    "too_few_values": Words("{count} {unit}: a 99 % interval needs {needed}"),
    "overlaps_equivalence_margin": Words(
        "the interval is narrow, and overlaps the equivalence margin: an effect of at most "
        "{largest:.1%}"
    ),
    "below_minimum_detectable_effect": Words(
        "below the minimum detectable effect of {mde:.1%}: give it more --time, or a quieter "
        "machine"
    ),
    "plain_function": Words("a plain function: nothing to compare it with"),
    "plain_functions": Words(
        "plain functions: nothing is checked and nothing compared, so no speedup is claimed"
    ),
    "builds_differ": Words(
        "two builds of the first function differ: {speedup:times}; times of single builds vary "
        "by as much"
    ),
    "warm_up_drifts": Words(
        "still drifting by {drift:.1%} when its warm-up ended",
        "still drifting when the warm-up ended:",
        "by {drift:.1%}",
    ),
    "off_the_cpu": Words(
        "off the CPU for {share:.0%} of its time: a busy machine, or a step that waits",
        "off the CPU for a part of the time (a busy machine, or steps that wait):",
        "{share:.0%}",
    ),
    "solo_run_differs": Words(
        _solo_differs,
        "in a solo run of {seconds:.0f} s a step took more or less time than when interleaved:",
        _solo_change,
    ),
    "ran_one_at_a_time": Words("the variants do not fit into memory together: each ran alone"),
    "gaps_in_device_time": Words(
        "gaps between launches are in its device time: it waits for the device, or launches more "
        "than a queue holds"
    ),
    "work_beside_the_stream": Words(
        "{host_s:seconds} on the host's clock, {device_s:seconds} on the device's: join side "
        "streams in the step",
        "more time on the host's clock than on the device's (join side streams in the step):",
        "{host_s:seconds} against {device_s:seconds}",
    ),
    "work_after_the_step": Words(
        "other threads or processes spent {left_over_s:seconds} of CPU time after steps of "
        "{time_s:seconds} had returned: wait for them in the step"
    ),
    "streams_not_joined": Words(
        "the profile holds work on {count:count stream|streams} that nothing waits for: join "
        "side streams in the step"
    ),
    "busy_between_steps": Words(
        "other threads or processes of it are busy while nothing is timed ({share:.0%} of a CPU): "
        "let them rest between steps"
    ),
    "no_effect": Words("no effect here: {reason}"),
    "same_operations": Words(
        "it runs the same operations as {against}, on operands of the same shapes"
    ),
    "fixes_overlap": _together(
        "some shorten the same part of the step, and a part can be removed only once"
    ),
    "fixes_compound": _together(
        "of what one fix leaves, the part of the next is a larger share (Amdahl)"
    ),
    "fixes_multiply": _together("as much as the product"),
    "first_step_sets_up": Words(
        "its first step, which compiles or sets up, took {first_step_s:seconds}, apart from "
        "these times",
        "first steps, which compile or set up, apart from these times:",
        "{first_step_s:seconds}",
    ),
    "page_faults": Words(
        "{faults:,.0f} page faults a step: {bytes:bytes} of memory touched for the first time",
        "page faults, memory touched for the first time, per step:",
        "{faults:,.0f} ({bytes:bytes})",
    ),
    "garbled_lines": Words("lines of the run file that cannot be read were skipped: {lines}"),
    "unknown_events": Words(
        "{count:count event|events} of unknown types skipped: written by another gpulab"
    ),
    "run_file_cut": Words("the run file ends here: {message}"),
}
