"""Reading traces made by hand: what is skipped, what is refused, and what ran in them by name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from traces import MAIN, call, copy, document, event, kernel, mark, op, window

from gpulab.model.intervals import measure, union
from gpulab.model.operations import kernels, operations
from gpulab.model.trace import read, validate


def rows(*events, most=40):
    found = operations(read(document(*events)), most)
    assert all(one.share == pytest.approx(one.self_s / 1e-3) for one in found)
    return [(one.name, one.shapes, one.calls, round(1e6 * one.self_s, 3)) for one in found]


def without(key, one):
    return {name: value for name, value in one.items() if name != key}


def test_events_are_read_in_seconds_of_the_window():
    found = read(
        document(op("mm", 100, 200), call("cudaLaunchKernel", 5, 9, 3), kernel(-10, 300, 3), mark("data", 0, 1))
    )
    assert (found.window, found.main, found.skipped) == ((0, pytest.approx(1e-3)), MAIN, 0)
    (operation,), (launch,), (ran,), (note,) = (
        found.operations[MAIN],
        found.calls[MAIN],
        found.device,
        found.annotations,
    )
    assert operation.span == pytest.approx((100e-6, 200e-6))
    assert launch.correlation == ran.correlation == 3
    assert ran.span == pytest.approx((-10e-6, 300e-6))
    assert note.name == "gpulab:data"


def test_events_with_something_missing_are_skipped_and_counted():
    whole = op("mm", 100, 200)
    broken = [without(key, whole) for key in ("ts", "dur", "name", "pid", "tid")]
    broken += [{**whole, "dur": -1}, {**whole, "ts": "soon"}, {**whole, "dur": float("nan")}]
    of_no_interest = [{"ph": "M", "name": "process_name"}, event("python_function", "f", 0, 1), "text", {}]
    found = read(document(whole, without("args", op("add", 0, 1)), *broken, *of_no_interest))
    assert found.skipped == len(broken)
    assert [one.name for one in found.operations[MAIN]] == ["aten::mm", "aten::add"]


@pytest.mark.parametrize("bad", [{}, {"traceEvents": {}}, {"traceEvents": [op("mm", 0, 1)]}])
def test_what_has_no_window_is_refused(bad):
    with pytest.raises(ValueError, match=r"trace|gpulab:window"):
        read(bad)


def test_a_mark_named_window_is_not_the_window():
    found = read({"traceEvents": [mark("window", 100, 200), window(), mark("window", 300, 400)]})
    assert found.window_s == pytest.approx(1e-3)
    assert len(found.annotations) == 2


def test_a_trace_that_a_viewer_draws():
    named = {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}}
    flow = {"ph": "s", "id": 3, "pid": 1, "tid": 1, "ts": 5.0, "cat": "ac2g", "name": "ac2g"}
    assert validate(document(named, flow, op("mm", 0, 1), kernel(0, 0))) == []


@pytest.mark.parametrize("key", ["ph", "name", "ts", "pid", "tid"])
def test_a_trace_that_a_viewer_does_not_draw(key):
    (problem,) = validate(document(op("add", 0, 1), *[without(key, op("mm", 0, 1))] * 3))
    assert problem == f"no {key}: 3 of 5 events, the first is 2"


@pytest.mark.parametrize("dur", [None, -1, "long", float("inf"), True])
def test_a_complete_event_has_a_duration(dur):
    assert validate(document({**op("mm", 0, 1), "dur": dur})) == ["no dur >= 0: 1 of 2 events, the first is 1"]


@pytest.mark.parametrize("bad", [None, [], {}, {"traceEvents": {}}, {"traceEvents": ["text"]}])
def test_what_is_no_trace_at_all(bad):
    assert len(validate(bad)) == 1


def test_host_operations_by_name_and_shapes_without_those_inside_them():
    assert rows(
        op("linear", 0, 100, dims=[[8, 4], [4, 4], []]),
        op("mm", 20, 80, dims=[[8, 4], [4, 4]]),
        op("mm", 30, 40, (1, 2), dims=[[8, 4], [4, 4]]),
        op("cat", 200, 210, dims=[[[2, 3], [3]], []]),
        op("mm", 2000, 2100),
    ) == [
        ("aten::mm", "8x4, 4x4", 2, 70),
        ("aten::linear", "8x4, 4x4", 1, 40),
        ("aten::cat", "[2x3, 3]", 1, 10),
    ]


def test_kernels_and_copies_of_a_device():
    found = rows(op("mm", 0, 500), kernel(0, 100), kernel(50, 150, stream=8), copy("HtoD", 990, 1010))
    assert found == [("gemm", "", 2, 200), ("Memcpy HtoD (Pinned -> Device)", "", 1, 10)]


def test_the_rest_is_one_row():
    assert rows(op("a", 0, 100), op("b", 100, 150), op("c", 150, 160), op("d", 160, 169), most=2) == [
        ("aten::a", "", 1, 100),
        ("aten::b", "", 1, 50),
        ("... 2 more", "", 2, 19),
    ]


def test_nothing_ran():
    assert operations(read(document())) == []
    assert operations(read(document(op("mm", 0, 1), length=0))) == []


def test_counts_to_compare_recordings_with():
    work = op("linear", 0, 100), op("mm", 20, 80), op("mm", 0, 10, (1, 2)), op("mm", 1000, 1001)
    assert kernels(read(document(*work))) == {"aten::linear": 1, "aten::mm": 2}
    assert kernels(read(document(*work, kernel(0, 1), kernel(5, 6), kernel(-9, -1)))) == {"gemm": 2}


@given(st.lists(st.tuples(st.integers(0, 900), st.integers(0, 300)), max_size=20))
def test_self_times_sum_to_the_time_in_any_operation(spans):
    events = [op(f"f{i % 3}", start, min(1000, start + length)) for i, (start, length) in enumerate(spans)]
    busy = measure(union((1e-6 * start, 1e-6 * min(1000, start + length)) for start, length in spans))
    found = operations(read(document(*events)))
    assert sum(one.self_s for one in found) == pytest.approx(busy, abs=1e-12)
    assert sum(one.calls for one in found) == len(spans)
