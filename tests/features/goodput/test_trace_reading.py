"""Reading traces made by hand: what is skipped, and what is refused."""

import pytest
from traces import MAIN, call, document, event, kernel, op, phase, window

from gpulab.traces.trace import read


def without(key, raw):
    return {name: value for name, value in raw.items() if name != key}


def test_events_are_read_in_seconds_of_the_window():
    trace = read(
        document(
            op("mm", 100, 200),
            call("cudaLaunchKernel", 5, 9, 3),
            kernel(-10, 300, 3),
            phase("data", 0, 1),
        )
    )
    assert (trace.window, trace.main) == ((0, pytest.approx(1e-3)), MAIN)
    assert trace.size == 4
    (operation,), (launch,) = trace.operations[MAIN], trace.calls[MAIN]
    (launched,), (annotation,) = trace.device, trace.annotations
    assert operation.span == pytest.approx((100e-6, 200e-6))
    assert launch.correlation == launched.correlation == 3
    assert launched.span == pytest.approx((-10e-6, 300e-6))
    assert annotation.name == "gpulab:data"


def test_phases_recorded_as_operations_are_annotations():
    """The profiler takes hundreds of microseconds for an annotation, so the lab's own phases come
    as operations.
    """
    raw = {**phase("data", 0, 1), "cat": "cpu_op"}
    trace = read({"traceEvents": [{**window(), "cat": "cpu_op"}, raw, op("mm", 2, 3)]})
    assert [annotation.name for annotation in trace.annotations] == ["gpulab:data"]
    assert [operation.name for operation in trace.operations[MAIN]] == ["aten::mm"]


def test_events_with_something_missing_are_skipped():
    whole = op("mm", 100, 200)
    broken = [without(key, whole) for key in ("ts", "dur", "name", "pid", "tid")]
    broken += [{**whole, "dur": -1}, {**whole, "ts": "soon"}, {**whole, "dur": float("nan")}]
    irrelevant = [
        {"ph": "M", "name": "process_name"},
        event("python_function", "f", 0, 1),
        "text",
        {},
    ]
    trace = read(document(whole, without("args", op("add", 0, 1)), *broken, *irrelevant))
    assert [operation.name for operation in trace.operations[MAIN]] == ["aten::mm", "aten::add"]


@pytest.mark.parametrize("bad", [{}, {"traceEvents": {}}, {"traceEvents": [op("mm", 0, 1)]}])
def test_a_trace_without_a_window_is_refused(bad):
    with pytest.raises(ValueError, match=r"trace|gpulab:window"):
        read(bad)


def test_a_phase_named_window_is_not_the_window():
    trace = read({"traceEvents": [phase("window", 100, 200), window(), phase("window", 300, 400)]})
    assert trace.window_s == pytest.approx(1e-3)
    assert len(trace.annotations) == 2
