"""Kernels below the code of their variants, and as machine code: what another variant does not have
is marked.
"""

import time

import pytest
from conftest import printed

from gpulab.catalog.kernels import kernels_of
from gpulab.core.payloads import KernelText
from gpulab.features.code.view import changed_lines, code_view, machine_code

HANGS_S = 10
SOURCE = '''from gpulab.cuda import CudaSource
cuda = CudaSource("""
__global__ void one(float* out) {
    int i = threadIdx.x;
    out[i] = 1;
}
template <int N>
__global__ void two(float* out) {
    int i = threadIdx.x;
    out[i] = N;
}
""")


def plain(lab):
    return None


def old(lab):
    return cuda.kernel("one"), cuda.kernel("one")


def new(lab, n):
    return cuda.kernel(f"two<{n}>", threads=(n, n))


def unknown(lab):
    return cuda.kernel("one", threads=lab.threads)
'''


def lines_of(*names, width=80, made=None, source=SOURCE):
    kernels = kernels_of(source, names, {"n": 8})
    shown = printed(code_view(source, names, None, width, kernels, made), width)
    return [line.rstrip() for line in shown.splitlines()]


def test_each_kernel_stands_once_below_its_variant_with_its_lines_in_the_file():
    lines = lines_of("old", "new")
    first, second = (
        lines.index("       one, 256 threads a block"),
        lines.index("       two<8>, 64 threads a block"),
    )
    assert lines[first + 1 : first + 5] == [
        "   3 - __global__ void one(float* out) {",
        "   4       int i = threadIdx.x;",
        "   5 -     out[i] = 1;",
        "   6   }",
    ]
    assert lines[second + 1 : second + 4] == [
        "   7 + template <int N>",
        "   8 + __global__ void two(float* out) {",
        "   9       int i = threadIdx.x;",
    ]
    assert sum("out[i] = 1" in line for line in lines) == 1


def test_without_a_kernel_to_compare_with_nothing_is_marked():
    lines = lines_of("plain", "old")
    assert "   5       out[i] = 1;" in lines
    lines = lines_of("old", "plain")
    assert "   5       out[i] = 1;" in lines


def test_a_baseline_is_set_against_the_next_variant_with_kernels():
    assert "   5 -     out[i] = 1;" in lines_of("old", "plain", "new")


def test_threads_that_are_not_known_are_not_said():
    assert "       one" in lines_of("old", "unknown")


def test_what_the_compiler_made_stands_below_all_of_them():
    lines = lines_of("old", "new", made="made of them", width=120)
    assert lines.index("made of them") > lines.index("  10 +     out[i] = N;")
    assert lines[-1].startswith("- only in the baseline, + not in it")


def test_a_line_of_cuda_is_as_long_as_there_is_room_and_whole_where_it_is_not_asked():
    long = SOURCE.replace("out[i] = N;", f"out[i] = N; // {'x' * 200}")
    assert max(map(len, lines_of("old", "new", width=60, source=long))) <= 60
    kernels = kernels_of(long, ("old", "new"), {"n": 8})
    assert "x" * 200 in printed(code_view(long, ("old", "new"), None, None, kernels), 400)


def test_a_long_source_is_compared_too():
    kernels = [
        KernelText("k", "__global__ void k() {\n" + "x;\n" * (6_000 + more) + "}", 1)
        for more in (0, 1)
    ]
    started = time.monotonic()
    code_view(SOURCE, ("old", "new"), None, 80, {"old": kernels[:1], "new": kernels[1:]})
    machine_code({"old": [("k", ["x"] * 6_000)], "new": [("k", ["x"] * 6_001)]}, {}, ("old", "new"))
    assert time.monotonic() - started < HANGS_S


@pytest.mark.parametrize("times", [1, 4000], ids=["in order", "anywhere"])
def test_lines_that_the_others_do_not_have_differ(times):
    others = ["a", "b"] * times
    assert changed_lines([*others, "c"], others) == {2 * times}
    assert changed_lines(others, [*others, "c"]) == set()
    assert changed_lines([], others) == set()
    assert changed_lines(["a", "b"], []) == {0, 1}


def listed(listings, against=None, shown=None):
    view = machine_code(listings, against or {}, shown or list(listings))
    return [line.rstrip() for line in printed(view, 120).splitlines() if line]


def marked(old, new):
    """The lines of the new one that are marked."""
    lines = listed({"old": [("k", old)], "new": [("k", new)]}, {"new": "old"}, ["new"])
    return [line[2:] for line in lines[1:] if line.startswith("+ ")]


def test_registers_labels_and_reuse_are_not_what_differs():
    assert not marked(
        [
            "@P0 FFMA R1,R2.reuse,R3,R4",
            "@!UP1 BRA `(.L_x_3)",
            "ld.param.u64 %rd1, [_Z1ff_param_0];",
            "$L__BB0_2:",
        ],
        [
            "@P1 FFMA R7,R8,R9,R4.reuse",
            "@!UP0 BRA `(.L_x_9)",
            "ld.param.u64 %rd4, [_Z2gif_param_1];",
            "$L__BB7_9:",
        ],
    )


def test_other_instructions_constants_and_places_differ():
    old = ["LDG.E R1,[R2]", "IADD3 R0,R0,0x1,RZ", "FADD R1,R1,R2", "EXIT"]
    new = ["LDG.E.64 R1,[R2]", "IADD3 R0,R0,0x2,RZ", "FADD R1,R1,R2", "FADD R1,R1,R2", "EXIT"]
    assert marked(old, new) == ["LDG.E.64 R1,[R2]", "IADD3 R0,R0,0x2,RZ", "FADD R1,R1,R2"]
    assert marked(["a", "b"], ["b", "a"]) in (["a"], ["b"])
    assert marked(["a"], ["a", "", "// note", "\t.loc 1 2 3", "\tadd;"]) == ["    add;"]


def test_machine_code_is_set_against_the_declared_variant_or_the_next_with_kernels():
    kernels = {"a": [("k", ["x", "y"])], "b": [("k", ["x"])], "c": [("k", ["y"]), ("l", ["z"])]}
    lines = listed(kernels, {"b": "a", "c": "torch"})
    assert lines == [
        "── a · k · + is not in b",
        "  x",
        "+ y",
        "── b · k · + is not in a",
        "  x",
        "── c · k · + is not in a",
        "  y",
        "── c · l · + is not in a",
        "+ z",
    ]
    assert listed(kernels, {"c": "b"}, ["c"])[:2] == ["── c · k · + is not in b", "+ y"]


def test_the_only_variant_with_kernels_is_set_against_nothing():
    assert listed({"only": [("k", ["x"])]}, {"only": "torch"}, ["only", "torch"]) == [
        "── only · k",
        "  x",
    ]
