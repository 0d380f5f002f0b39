"""Recorded operations as calls in Python: tensors, numbers, keywords; and the reasons of those that
cannot be.
"""

import ast

import pytest

from gpulab.catalog.reader import read_text
from gpulab.features.from_trace.calls import RecordedCall, RecordedCalls, RecordedInput
from gpulab.features.from_trace.isolated import NotIsolableError, isolated
from gpulab.features.from_trace.text import NoneIsolableError, operation_file


def tensor(*dims, strides=None, kind="float"):
    if strides is None:
        strides, count = [], 1
        for size in reversed(dims):
            strides, count = [count, *strides], count * size
    return RecordedInput(kind, list(dims), list(strides), "")


def number(value):
    return RecordedInput("Scalar", [], [], value)


NOTHING = RecordedInput("", [], [], "")


def recorded(name, *inputs, **more):
    values = {
        "calls": 4,
        "self_s": 1e-3,
        "share": 0.25,
        "median_s": 2e-3,
        "fastest_s": 1.9e-3,
        "slowest_s": 3e-3,
    }
    return RecordedCall(
        **{"name": name, "inputs": inputs, "callers": (), "copies": False, **values, **more}
    )


def lists(*dims, kind="TensorList"):
    made = [tensor(*sizes) for sizes in dims]
    return RecordedInput(
        kind, [entry.dims for entry in made], [entry.strides for entry in made], ""
    )


@pytest.mark.parametrize(
    ("inputs", "call"),
    [
        (("mm", tensor(8, 4), tensor(4, 2)), "mm(a, b)"),
        (
            ("addmm", tensor(2), tensor(8, 4), tensor(4, 2), number("1"), number("1")),
            "addmm(a, b, c)",
        ),
        (
            ("addmm", tensor(2), tensor(8, 4), tensor(4, 2), number("0"), number("0.5")),
            "addmm(a, b, c, beta=0, alpha=0.5)",
        ),
        (("add", tensor(8), tensor(8), number("2")), "add(a, b, alpha=2)"),
        (("mul", tensor(8), tensor(kind="double")), "mul(a, b)"),
        (("mul", tensor(8), tensor(8), tensor(8)), "mul(a, b, out=c)"),
        (("_softmax", tensor(8, 4), number("-1"), number("False")), "_softmax(a, -1, False)"),
        (
            ("_softmax_backward_data", tensor(8, 4), tensor(8, 4), number("-1"), number("6")),
            "_softmax_backward_data(a, b, -1, torch.float32)",
        ),
        (
            (
                "native_layer_norm",
                tensor(8, 4),
                RecordedInput("ScalarList", [], [], "[4]"),
                NOTHING,
                tensor(4),
                number("1e-05"),
            ),
            "native_layer_norm(a, [4], None, b, 1e-05)",
        ),
        (
            (
                "_to_copy",
                tensor(8),
                number("5"),
                NOTHING,
                NOTHING,
                NOTHING,
                number("False"),
                NOTHING,
            ),
            "_to_copy(a, dtype=torch.float16, non_blocking=False)",
        ),
        (
            (
                "sum",
                tensor(8),
                RecordedInput("ScalarList", [], [], "[0]"),
                number("False"),
                NOTHING,
            ),
            "sum(a, [0], False)",
        ),
        (("gelu", tensor(8), NOTHING), "gelu(a)"),
        (("fill_", tensor(8), number("inf")), 'fill_(a, float("inf"))'),
        (("_foreach_sqrt", lists((8, 4), (4,))), "_foreach_sqrt(a)"),
        (("_foreach_mul_", lists((8, 4), (4,)), number("0.9")), "_foreach_mul_(a, 0.9)"),
        (("_foreach_add_", lists((8,)), lists((8,)), number("2")), "_foreach_add_(a, b, alpha=2)"),
    ],
)
def test_an_operation_is_called_as_it_was(inputs, call):
    name, *values = inputs
    assert isolated(recorded(f"aten::{name}", *values), "float32").call == f"torch.ops.aten.{call}"


@pytest.mark.parametrize(
    ("inputs", "made"),
    [
        ((tensor(8, 4),), "_tensor(lab, torch.float32, (8, 4))"),
        (
            (tensor(8, 4, strides=(1, 8), kind="c10::BFloat16"),),
            "_tensor(lab, torch.bfloat16, (8, 4), (1, 8))",
        ),
        ((tensor(8, kind="bool"),), "_tensor(lab, torch.bool, (8,), below=2)"),
    ],
)
def test_a_tensor_is_laid_out_as_it_was(inputs, made):
    assert isolated(recorded("aten::abs", *inputs), "float32").tensors[0][1] == made


def test_indices_are_within_what_they_point_into():
    call = isolated(
        recorded("aten::embedding", tensor(1000, 64), tensor(8, kind="long int"), number("-1")),
        "float32",
    )
    assert call.tensors[1][1] == "_tensor(lab, torch.int64, (8,), below=1000)"


def test_what_an_operation_changes_is_known_and_what_overlaps_too():
    call = isolated(
        recorded("aten::copy_", tensor(8, 4), tensor(8, 4, strides=(0, 1)), number("False")),
        "float32",
    )
    assert (call.changed, call.overlapping) == (("a",), ("b",))
    call = isolated(recorded("aten::_foreach_mul_", lists((8, 4), (4,)), number("0.9")), "bfloat16")
    assert call.tensors[0][1] == "[_tensor(lab, torch.bfloat16, shape) for shape in [(8, 4), (4,)]]"
    assert "bfloat16" in call.notes[0]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (recorded("AddmmBackward0", tensor(8)), "autograd"),
        (recorded("autograd::engine::evaluate_function: AddmmBackward0"), "autograd"),
        (recorded("c10d::allreduce_", tensor(8)), "other processes"),
        (recorded("triton_poi_fused_add_0", tensor(8)), "compile"),
        (recorded("mylib::attention", tensor(8)), "another library"),
        (recorded("my range"), "no operation of torch"),
        (recorded("aten::mm", inputs=None), "shapes were not recorded"),
        (recorded("aten::copy_", tensor(8), tensor(8), copies=True), "between host and device"),
        (recorded("aten::item", tensor(1)), "waits"),
        (recorded("aten::view", tensor(1)), "computes nothing"),
        (recorded("aten::index", tensor(8), NOTHING), "indices is not recorded"),
        (recorded("aten::div", tensor(8), tensor(8), NOTHING), "rounding_mode"),
        (recorded("aten::bincount", tensor(8, kind="long int")), "int64 values its argument 1"),
        (recorded("aten::mm", tensor(8, 4, kind="c10::qint8"), tensor(4, 8)), "qint8"),
        (recorded("aten::roll", tensor(8), number("__import__('os')")), "argument 2"),
        (recorded("aten::x()\nimport os", tensor(8)), "no operation of torch"),
    ],
)
def test_what_cannot_be_called_alone_says_why(call, reason):
    with pytest.raises(NotIsolableError, match=reason):
        isolated(call, "float32")


def file_of(*calls, top=10, **more):
    values = {"on_device": False, "steps": 2, "elsewhere": 0.0, **more}
    return operation_file("t.json", RecordedCalls(calls=calls, **values), top)


def test_the_file_is_a_scenario_with_a_variant_for_each_operation():
    mm = recorded("aten::mm", tensor(8, 4), tensor(4, 2), callers=("aten::linear",))
    transposed = recorded("aten::mm", tensor(8, 4, strides=(1, 8)), tensor(4, 2))
    text, written, named = file_of(mm, transposed, recorded("AddmmBackward0"), mm, top=3)
    scenario = read_text(text).scenario
    variants = scenario.variants
    assert scenario.params == {"operation": "mm_8x4_4x2"}
    assert (written, named) == (2, 1)
    assert list(variants) == ["recorded", "mm_8x4_4x2", "mm_8x4_4x2_2"]
    assert variants["mm_8x4_4x2"].summary == "aten::mm: 2.00 ms, 2 calls a step, 25.0% of the time."
    assert variants["mm_8x4_4x2_2"].against is None
    assert "Called by aten::linear." in text
    assert text.endswith(
        "# Not in this file:\n# - 25.0% of the time, AddmmBackward0: part of autograd, which calls "
        "other operations\n"
    )


def test_a_recording_of_a_device_needs_one_and_one_of_a_cpu_does_not():
    mm = recorded("aten::mm", tensor(8, 4), tensor(4, 2))
    text, *_ = file_of(mm, on_device=True, elsewhere=0.125)
    scenario = read_text(text).scenario
    assert (scenario.needs, scenario.clock) == (("cuda",), "device")
    assert "12.5% of the device's time was launched by no operation in the trace" in text
    text, *_ = file_of(mm)
    assert read_text(text).scenario.needs == ()


def test_results_are_kept_but_not_what_an_operation_changes():
    text, *_ = file_of(
        recorded("aten::mm", tensor(8, 4), tensor(4, 2)), recorded("aten::neg_", tensor(8))
    )
    assert "Work(_keeping(lambda: torch.ops.aten.mm(a, b)), inputs=(a, b))" in text
    assert "Work(lambda: torch.ops.aten.neg_(a), state=a)" in text


def test_what_the_trace_does_not_hold_is_said():
    text, *_ = file_of(
        recorded("aten::gelu", tensor(8), NOTHING), recorded("aten::_foreach_sqrt", lists((8,)))
    )
    assert "The trace does not hold approximate=: the default is assumed." in " ".join(text.split())
    assert "The trace does not hold the dtype of its lists: float32 is assumed." in " ".join(
        text.split()
    )


def test_hundreds_of_tensors_stay_within_the_lines():
    text, *_ = file_of(recorded("aten::_foreach_sqrt", lists(*[(768, 768)] * 300)))
    assert max(map(len, text.splitlines())) <= 100
    assert list(read_text(text).scenario.variants) == ["recorded", "foreach_sqrt_300_tensors"]


def test_a_file_of_nothing_is_not_made():
    with pytest.raises(NoneIsolableError, match="AddmmBackward0: part of autograd"):
        file_of(recorded("AddmmBackward0"))


def test_names_of_a_trace_are_no_code():
    """The file is run, and the trace may be a stranger's."""
    evil = 'x"""\nprint(1)\n"""\\'
    mm = recorded("aten::mm", tensor(8, 4), tensor(4, 2), callers=(evil,))
    text, *_ = file_of(mm, recorded(f"{evil}\nprint(2)\rprint(3)"))
    calls = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    assert not any(isinstance(function, ast.Name) and function.id == "print" for function in calls)
    assert "Called by x" in text


def test_running_statistics_are_state_and_dunders_change_nothing():
    statistics = [tensor(4) for _ in range(4)]
    text, *_ = file_of(
        recorded("aten::native_batch_norm", tensor(2, 4, 8, 8), *statistics, number("True"))
    )
    assert "state=(d, e)" in text
    assert "inputs=(a, b, c)" in text
    text, *_ = file_of(recorded("aten::__and__", tensor(8, kind="bool"), tensor(8, kind="bool")))
    assert "state=" not in text


def test_a_call_that_took_no_time_is_no_measure_of_the_others():
    text, *_ = file_of(recorded("aten::mm", tensor(8, 8), tensor(8, 8), fastest_s=0.0))
    assert "From 0 s to 3.00 ms in the trace." in " ".join(text.split())
    assert read_text(text).scenario is not None
