"""What is said of failures: of a variant's code, of the worker's process, of what comes after a measurement."""

from __future__ import annotations

from gpulab.views.sentences.words import Values, Words


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


WORDS = {
    "exception": Words("{message}"),
    "file_unreadable": Words("{file}, line {line}: {message}; {fix}"),
    "no_scenario": Words("{file} has no Scenario"),
    "hides_another": Words(_hides_another),
    "takes_arguments": Words("it takes arguments ({arguments}), and is called with none: wrap it, or give defaults"),
    "device_in_error": Words("the device is in error, and so is every later measurement of this process: {message}"),
    "timeout": Words("no end after {timeout_s:g} s: raise --timeout, or fix the hang"),
    "no_progress": Words(
        "no progress for {silence_s:.0f} s ({during}): fix the hang, or set --timeout if it is only slow"
    ),
    "overdue": Words(
        "no end after {taken_s:.0f} s, where {expected_s:.0f} s were expected: fix the hang, or set --timeout if it is "
        "only slow"
    ),
    "cancelled": Words("stopped by the user"),
    "killed": Words("killed: by the system for want of memory, by a limit such as ulimit -t, or by somebody"),
    "cpu_time_spent": Words("the worker used up its CPU time: raise the limit (ulimit -t)"),
    "crashed": Words("the worker crashed: {signal} ({meaning})"),
    "event_pipe_closed": Words(
        "the scenario closed the lab's event pipe: leave file descriptors alone that you did not open"
    ),
    "worker_exited": Words("the worker's process ended with exit code {code}: os._exit, or a native library's exit"),
    "worker_not_run": Words("the worker could not be run: {message}"),
    "events_lost": Words(
        "{count:count event|events} of the measurement lost, or a number forged: did the scenario write to the lab's "
        "event pipe?"
    ),
    "events_forged": Words(
        "{count:count event|events} came that the worker never sent: the scenario wrote to the lab's event pipe"
    ),
    "events_unconfirmed": Words(
        "the supervisor ended before it could say that {count:count event is|events are} the worker's own"
    ),
    "event_repeated": Words(
        "event {number} of the worker came twice, and only one of them is the lab's: the scenario wrote to the lab's "
        "event pipe"
    ),
    "event_after_end": Words("events came after the worker's last one: the scenario wrote to the lab's event pipe"),
    "event_not_allowed": Words(
        "an event came that no worker of this job sends ({type}): the scenario wrote to the lab's event pipe"
    ),
    "events_make_no_sense": Words("the events of this run make no sense together, and none is believed: {message}"),
    "lab_functions_replaced": Words(
        "the scenario replaced {count:count function|functions} that the lab measures or checks with: {names}"
    ),
    "supervisor_gone": Words("the supervisor exited without a status"),
    "processes_left_running": Words("the scenario left {count:count process|processes} running; terminated"),
    "malformed_event_lines": Words("{count:count malformed event line|malformed event lines} ignored"),
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
        "{file}: a viewer may not draw all of it: {field} is missing or impossible in {count} of {events} events, "
        "the first is {first}"
    ),
    "device_not_recorded": Words("nothing was recorded of the device: this is the host's time"),
    "recordings_differ": Words("two recordings hold different operations: the step goodput is unreliable"),
    "busy_exceeds_step": Words(
        "its recorded kernels and copies take {busy_s:seconds}, its step without the profiler {step_s:seconds}: the "
        "step goodput is unreliable",
        "step goodput is unreliable where what was recorded takes longer than the step without the profiler:",
        "{busy_s:seconds} against {step_s:seconds}",
    ),
    "goodput_uncertain": Words(
        lambda values: f"step goodput is {_two_ways(values)}: unreliable",
        "step goodput is unreliable where another way to know it differs by more than 5 points:",
        _two_ways,
    ),
    "profiler_overhead": Words(
        "profiling slowed this step by {overhead:.0%}: corrected for, but how the idle parts divide is approximate",
        "profiling slowed a step (corrected for, but how the idle parts divide is approximate):",
        "by {overhead:.0%}",
    ),
}
