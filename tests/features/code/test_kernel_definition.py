"""Where a kernel is defined in its source: its own lines, of no other kernel."""

import pytest

from gpulab.core.payloads import KernelText
from gpulab.features.code.analysis import definition_of

SOURCE = """
// copy( is in __global__ memory;
__global__ void copy(float* out, int n);
__device__ float twice(float x) { return 2 * x; }

template <int N>
__global__ void copy_several(float* out) {
    for (int i = 0; i < N; ++i) { out[i] = copy(i); }
}

template <typename T>
template <int N>
__global__ void __launch_bounds__(256, 8)
    copy (float* out, int n)
{
    if (n) {
        out[0] = twice(1);
    }
}
extern "C" __global__ void __launch_bounds__(N * 32) last(float* out) {}  // the end
"""
FIRST = 40
"""The line of its literal, which begins with a newline."""


def of(name, code=SOURCE):
    return definition_of(KernelText(name, code, FIRST))


@pytest.mark.parametrize("name", ["copy", "copy<float, 4>", " copy <4>"])
def test_a_definition_has_its_template_lines_and_its_launch_bounds(name):
    first, lines = of(name)
    assert first == FIRST + 10
    assert lines[0] == "template <typename T>"
    assert lines[3:5] == ["    copy (float* out, int n)", "{"]
    assert lines[-2:] == ["    }", "}"]
    assert len(lines) == 9


def test_a_name_that_begins_another_is_not_taken_for_it():
    first, lines = of("copy_several<8>")
    assert (first, len(lines)) == (FIRST + 5, 4)
    assert lines[1] == "__global__ void copy_several(float* out) {"
    assert of("several").lines == of("nothing").lines


def test_a_definition_in_one_line_ends_with_its_brace():
    assert of("last") == (
        FIRST + 19,
        ['extern "C" __global__ void __launch_bounds__(N * 32) last(float* out) {}'],
    )


@pytest.mark.parametrize("name", ["nothing", "twice", "copy_", "cop", "space::copy", "(", "\\"])
def test_where_there_is_no_definition_it_is_the_whole_source(name):
    first, lines = of(name)
    assert (first, lines) == (FIRST + 1, SOURCE.split("\n")[1:])


@pytest.mark.parametrize(
    "code", ["", "\n", "__global__ void k(int a);", "__global__ void k", "#define K k() {"]
)
def test_what_is_no_definition_is_shown_as_it_is(code):
    assert of("k", code).lines == code.split("\n")


def test_a_definition_that_never_ends_goes_to_the_end():
    assert of("k", "int a;\n__global__ void k() {\n  {\n}") == (
        FIRST + 1,
        ["__global__ void k() {", "  {", "}"],
    )
