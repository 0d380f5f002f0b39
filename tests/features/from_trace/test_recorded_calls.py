"""Operations of a trace by name and inputs: own time, time of a call, steps, and the device's time
by launch.
"""

import json
import lzma
from io import StringIO
from pathlib import Path

import pytest
from traces import ORIGIN, call, copy, event, kernel, window

from gpulab.features.from_trace.calls import recorded_calls
from gpulab.traces.stream import trace_events
from gpulab.traces.trace import read_any


def op(name, start, end, dims=None, **more):
    inputs = (
        {} if dims is None else {"Input Dims": dims, "Input type": ["float"] * len(dims), **more}
    )
    return event("cpu_op", name, start, end, **inputs)


def calls_of(*events, own=False):
    entries = [window(), *events] if own else list(events)
    return recorded_calls(read_text(json.dumps({"traceEvents": entries})))


def read_text(text):
    return read_any(trace_events(StringIO(text)))


def test_own_time_ranks_and_a_call_holds_what_it_calls():
    recorded = calls_of(
        op("aten::addmm", 0, 100, [[8], [8, 4]]),
        op("aten::copy_", 10, 40, [[8]]),
        op("aten::addmm", 200, 320, [[8], [8, 4]]),
        op("aten::copy_", 210, 240, [[8]]),
        op("aten::addmm", 400, 500, [[9], [9, 4]]),
    )
    addmm, other, copied = recorded.calls
    assert (addmm.name, addmm.calls, addmm.callers) == ("aten::addmm", 2, ())
    assert addmm.self_s == pytest.approx(160e-6)
    assert addmm.median_s == pytest.approx(110e-6)
    assert (addmm.fastest_s, addmm.slowest_s) == (pytest.approx(100e-6), pytest.approx(120e-6))
    assert other.inputs[0].dims == [9]
    assert (copied.calls, copied.callers) == (2, ("aten::addmm",))
    assert sum(entry.share for entry in recorded.calls) == pytest.approx(1)


@pytest.mark.parametrize(
    ("marks", "steps"),
    [
        ((), None),
        (("ProfilerStep#4", "ProfilerStep#5"), 2),
        (("Optimizer.step#SGD.step",) * 3, 3),
        (("Optimizer.step#SGD.step", "Optimizer.step#Adam.step") * 2, 2),
    ],
)
def test_steps_are_those_of_the_marks(marks, steps):
    events = [event("user_annotation", name, index, index + 1) for index, name in enumerate(marks)]
    assert calls_of(op("aten::mm", 0, 100), *events).steps == steps


def test_on_a_device_a_kernel_counts_for_the_operation_that_launched_it():
    recorded = calls_of(
        op("aten::linear", 0, 100, [[8]]),
        op("aten::mm", 10, 50, [[8]]),
        call("cudaLaunchKernel", 20, 30, correlation=1),
        op("aten::copy_", 60, 80, [[8]]),
        call("cudaMemcpyAsync", 65, 70, correlation=2),
        kernel(100, 400, correlation=1),
        {**copy("HtoD", 400, 500), "args": {"correlation": 2}},
        kernel(500, 600, correlation=99),
    )
    by_name = {entry.name: entry for entry in recorded.calls}
    assert recorded.on_device
    assert by_name["aten::mm"].self_s == pytest.approx(300e-6)
    assert by_name["aten::linear"].self_s == 0
    assert by_name["aten::linear"].median_s == pytest.approx(400e-6)
    assert by_name["aten::copy_"].copies
    assert not by_name["aten::mm"].copies
    assert recorded.elsewhere == pytest.approx(0.2)


def test_only_the_window_of_the_labs_own_recording_counts():
    outside = {**op("aten::mm", 0, 10, [[8]]), "ts": ORIGIN + 5000}
    assert [
        entry.calls for entry in calls_of(op("aten::mm", 0, 10, [[8]]), outside, own=True).calls
    ] == [1]
    assert [entry.calls for entry in calls_of(op("aten::mm", 0, 10, [[8]]), outside).calls] == [2]


@pytest.mark.parametrize(
    "wrong", [[], {}, {"traceEvents": 3}, {"traceEvents": []}, {"traceEvents": [3]}]
)
def test_what_is_no_trace_is_refused(wrong):
    with pytest.raises(
        ValueError, match=r"no list of traceEvents|no operations|no JSON|is of torch.profiler"
    ):
        read_text(json.dumps(wrong))


CORPUS = Path(__file__).parents[2] / "corpus"
ALONE_MS = (2.77, 2.74, 2.73, 2.71, 5.38, 5.35, 2.60, 2.61, 5.20, 2.09)
"""Medians of `gpulab --run` of the file that was written for this trace, on the same H200."""


def test_kernels_of_a_gpu_took_as_long_alone_as_in_the_recorded_step():
    with lzma.open(CORPUS / "traces" / "transformer-step-h200.json.xz", "rt") as file:
        trace = read_any(trace_events(file))
    recorded = recorded_calls(trace)
    assert (recorded.on_device, recorded.steps) == (True, 2)
    heaviest = recorded.calls[: len(ALONE_MS)]
    assert {entry.name for entry in heaviest} == {"aten::mm", "aten::addmm"}
    assert [1e3 * entry.median_s for entry in heaviest] == pytest.approx(ALONE_MS, rel=0.01)
    assert sum(entry.share for entry in recorded.calls) + recorded.elsewhere == pytest.approx(1)
