"""CUDA C++ is compiled for any architecture without a GPU; what does not compile says where in the
scenario's file.
"""

import importlib.util
import sys

import pytest

from gpulab.core.payloads import KernelText
from gpulab.features.kernels import compiler, reading, source
from gpulab.features.kernels.compiler import (
    CompileError,
    NoCompilerError,
    compile_kernel,
    header_folders,
)
from gpulab.features.kernels.reading import read_kernel, sass_lines

SCENARIO = '''"""A lesson."""
from gpulab import Scenario, Work
from gpulab.cuda import CudaSource

scenario = Scenario("x")
cuda = CudaSource(r"""
__global__ void copy(const float4* in, float4* out, long long n) {
    const long long i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}
template <int N>
__global__ void fill(float* out, float value, double scale) {
    __shared__ float kept[64 * N];
    kept[threadIdx.x] = value;
    __syncthreads();
    out[threadIdx.x] = kept[63 - threadIdx.x] * scale;
}
struct Size { int rows, columns; long long more; };
__global__ void sized(float* out, Size size, char small) { out[size.rows] = small; }
""")


@scenario.variant
def only(lab, name="copy", **options):
    kernel = cuda.kernel(name, **options)
    return Work(lambda: kernel(1))
'''
BROKEN = "out[i] = in[i];", "out[i] = in[i] + missing;"
LINE = 9
"""Of that text in the file."""


@pytest.fixture
def only(tmp_path, monkeypatch):
    """Imports a scenario whose kernels are compiled, and loaded nowhere; its variant, and its
    file.
    """

    def load(text, file):
        return compile_kernel(text, "sm_90", file)

    def write(*replaced):
        path = tmp_path / "mine.py"
        path.write_text(SCENARIO.replace(*replaced) if replaced else SCENARIO)
        spec = importlib.util.spec_from_file_location("mine", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.only, str(path)

    monkeypatch.setattr(source, "load", load)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    source.kernels_made()  # of other tests
    yield write
    source.kernels_made()


@pytest.fixture
def kernels(only):
    """By its name the text of a kernel of that scenario."""
    variant, _ = only()

    def text(name, threads=256, shared_bytes=0):
        variant(None, name, threads=threads, shared_bytes=shared_bytes)
        return source.kernels_made()[-1][0]

    return text


def error_of(variant, *arguments, **options):
    with pytest.raises(CompileError) as raised:
        variant(None, *arguments, **options)
    return raised.value


def test_a_mistake_has_its_line_in_the_scenarios_file(only):
    variant, path = only(*BROKEN)
    error = error_of(variant)
    assert (error.filename, error.lineno) == (path, LINE)
    assert error.text.strip() == "if (i < n) out[i] = in[i] + missing;"
    assert error.msg == 'identifier "missing" is undefined'
    assert "1 error detected" in error.__notes__[0]
    assert source.kernels_made() == [], "it was not made"


def test_a_mistake_in_a_source_that_is_no_literal_has_the_line_of_its_call(only):
    variant, path = only('""")\n', '""" + "__global__ void k() { missing; }")\n')
    error = error_of(variant)
    assert error.filename == path
    assert error.msg == 'identifier "missing" is undefined'
    last = SCENARIO.splitlines().index('""")')
    assert error.lineno >= last


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", 'identifier "nothing" is undefined'),
        ("fill", "fill"),
        ("fill<nothing>", "nothing"),
        ("", ""),
    ],
)
def test_a_name_that_the_source_does_not_have_is_told_with_the_line_of_the_source(
    only, name, message
):
    variant, path = only()
    error = error_of(variant, name)
    assert (error.filename, error.lineno) == (path, 6)
    assert message in error.msg
    assert error.msg.endswith(f"(in {name})")


def test_options_reach_the_compiler(only):
    variant, _ = only("CudaSource(r", 'CudaSource(options=["-DVALUE=3"], code=r')
    variant(None)
    ((text, _),) = source.kernels_made()
    assert text.options == ("-DVALUE=3",)
    counting = KernelText(
        "k", "__global__ void k(int* a) { static_assert(VALUE == 3); *a = VALUE; }", 1, text.options
    )
    assert compile_kernel(counting, "sm_90").cubin


def test_headers_of_the_toolkit_and_of_the_own_folder_are_found(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "one.h").write_text('#include "two.h"\n#include "../three.h"\n')
    (tmp_path / "sub" / "two.h").write_text("#define TWO 2\n")
    (tmp_path / "three.h").write_text("#define THREE 3\n")
    code = "#include <cuda_fp16.h>\n" if header_folders() else ""
    code += '#include "sub/one.h"\nstatic_assert(TWO + THREE == 5);\n__global__ void k() {}'
    file = str(tmp_path / "mine.py")
    assert compile_kernel(KernelText("k", code, 1), "sm_90", file).cubin
    code = code.replace("sub/one.h", "one.h")
    for option in ("-Isub", f"-I{tmp_path}/sub", "-I./sub/"):
        assert compile_kernel(KernelText("k", code, 1, (option,)), "sm_90", file).cubin


def test_a_header_that_is_missing_has_its_line(tmp_path):
    file = str(tmp_path / "mine.py")
    text = KernelText("k", '\n#include "missing.h"\n__global__ void k() {}', 70)
    with pytest.raises(CompileError, match="cannot open source file") as raised:
        compile_kernel(text, "sm_90", file)
    assert (raised.value.filename, raised.value.lineno) == (file, 71)


def test_kernels_that_were_made_are_given_once(only):
    variant, path = only()
    for name in ("copy", "fill<2>", "copy"):
        variant(None, name, threads=(8, 4))
    made = source.kernels_made()
    assert [(text.name, text.threads, text.line, file) for text, file in made] == [
        ("copy", (8, 4, 1), 6, path),
        ("fill<2>", (8, 4, 1), 6, path),
    ]
    assert source.kernels_made() == []


@pytest.mark.parametrize("threads", [0, -32, (), (0, 1), (8, 8, 1, 1), (256, 0, 1), [1, 2, 3, 4]])
def test_threads_that_are_no_block_are_refused_before_anything_is_compiled(
    only, monkeypatch, threads
):
    variant, _ = only()
    monkeypatch.setattr(source, "load", None)
    with pytest.raises(
        ValueError, match="are no dimensions: write 1 to 3 whole numbers of 1 or more"
    ):
        variant(None, threads=threads)


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("copy", ("u64", "u64", "u64")),
        ("fill<2>", ("u64", "f32", "f64")),
        ("sized", ("u64", "b8[16]", "u8")),
    ],
)
def test_parameters_are_those_that_the_kernel_declares(kernels, name, types):
    assert compile_kernel(kernels(name), "sm_90").parameters == types


def test_facts_are_those_of_the_machine_code(kernels):
    found = read_kernel(kernels("fill<2>", threads=64, shared_bytes=1024), "sm_90")
    assert (found.name, found.arch, found.threads) == ("fill<2>", "sm_90", 64)
    assert (found.shared_bytes, found.spill_bytes, found.bank_conflicts) == (512 + 1024, 0, 1)
    assert found.instructions["shared_store_32"] == found.instructions["shared_load_32"] == 1
    assert found.instructions["barrier"] == 1
    assert (found.occupancy, found.limiter) == (1.0, "threads")
    assert 0 < found.registers <= 32
    assert found.store_use == 1.0
    assert read_kernel(kernels("copy"), "sm_90").instructions["load_128"] == 1


@pytest.mark.parametrize(
    "broken", [lambda: None, lambda: "/no/nvdisasm", lambda: __file__, lambda: "/bin/false"]
)
def test_without_a_disassembler_that_works_nothing_is_counted(kernels, monkeypatch, broken):
    of_sass = read_kernel(kernels("copy"), "sm_90")
    monkeypatch.setattr("gpulab.features.kernels.reading.disassembler", broken)
    monkeypatch.setattr(reading, "sass_lines", sass_lines.__wrapped__)  # what is cached stays
    found = read_kernel(kernels("copy"), "sm_90")
    assert (found.registers, found.occupancy, found.load_use) == (of_sass.registers, 1.0, 1.0)
    assert found.instructions == {}
    assert found.digest
    assert found.digest != of_sass.digest


@pytest.mark.parametrize("missing", ["cuda.bindings", "the library"])
def test_without_the_compiler_the_error_says_what_to_install(monkeypatch, kernels, missing):
    text = kernels("copy")
    if missing == "the library":

        def supported():
            raise RuntimeError("none")

        monkeypatch.setattr("cuda.bindings.nvrtc.nvrtcGetSupportedArchs", supported)
    else:
        monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    compiler._compile.cache_clear()
    for compiled in (compile_kernel, reading.read_kernel):
        with pytest.raises(NoCompilerError, match=r"pip install 'gpulab\[nvrtc\]'"):
            compiled(text, "sm_90")


def test_processes_of_a_run_share_what_one_of_them_has_compiled(tmp_path, monkeypatch):
    text = KernelText(
        name="f", code='extern "C" __global__ void f(float* x) { x[0] = 2.0f; }', line=1, options=()
    )
    monkeypatch.setenv(compiler.KERNELS_FOLDER, str(tmp_path / "kernels"))
    first = compile_kernel(text, "sm_90")
    compiler._compile.cache_clear()  # as in another process
    monkeypatch.setattr(compiler, "_compiled", None)
    assert compile_kernel(text, "sm_90") == first
    compiler._compile.cache_clear()
    for file in (tmp_path / "kernels").iterdir():
        file.write_bytes(b"cut")
    with pytest.raises(TypeError):  # it is compiled again, for which there is nothing here
        compile_kernel(text, "sm_90")
