"""A scenario's CUDA C++ may be anybody's: the compiler writes no file for it, and ends."""

import os
from pathlib import Path

import pytest

from gpulab.core.payloads import KernelText
from gpulab.features.kernels import compiler_process, source, worker
from gpulab.features.kernels.compiler import CompileError, compile_kernel, header_folders
from gpulab.features.kernels.compiler_process import CompilerProcess

KERNEL = "__global__ void k(int* a) { *a = 1; }\n"
ENDLESS = """
template <int DEEP, long PATH> struct A {
    static const int v = A<DEEP - 1, 2 * PATH>::v + A<DEEP - 1, 2 * PATH + 1>::v;
};
template <long PATH> struct A<0, PATH> { static const int v = 0; };
__global__ void k(int* a) { *a = A<60, 0>::v; }
"""


@pytest.fixture
def folder(tmp_path):
    """The scenario's folder."""
    own = tmp_path / "own"
    (own / "sub").mkdir(parents=True)
    (own / "mine.py").write_text("")
    return own


def compiled(folder, code=KERNEL, options=(), name="k"):
    return compile_kernel(
        KernelText(name, code, 10, tuple(options)), "sm_90", str(folder / "mine.py")
    )


def refused(folder, code=KERNEL, options=(), name="k"):
    with pytest.raises(CompileError) as error:
        compiled(folder, code, options, name)
    assert error.value.filename == str(folder / "mine.py")
    return error.value


@pytest.mark.parametrize(
    "option",
    [
        "--create-pch={}",
        "-create-pch={}",
        "--create_pch={}",
        "--create-pch {}",
        "--fdevice-time-trace={}",
        "-fdevice-time-trace={}",
        "--pch-dir={}",
        "-DX=1\n--create-pch={}",
        "-D X=1\0--create-pch={}",
        "-include={}",
        "--pre-include={}",
        "--include {}",
        "-I\n{}",
        "--ptxas-options=--output-file={}",
        "-Xptxas",
        "--maxrregcount=32 --create-pch={}",
        "--use_fast_math=--create-pch={}",
        "-std=c++17 --create-pch={}",
        "--ft",
        "-G",
        "\ud800",
        "",
        "-",
        "@{}",
    ],
)
def test_an_option_that_is_not_listed_is_refused_and_writes_nothing(folder, option):
    path = folder.parent / "precious"
    path.write_text("precious")
    error = refused(folder, options=[option.format(path)])
    assert "an option that is not allowed; those are -DNAME=VALUE, -UNAME" in error.msg
    assert path.read_text() == "precious"
    assert sorted(file.name for file in folder.parent.iterdir()) == ["own", "precious"]


@pytest.mark.parametrize("option", ["--create-pch", "-include", "--fdevice-time-trace", "-D"])
def test_nor_where_its_value_stands_behind_it(folder, option):
    assert "not allowed" in refused(folder, options=[option, str(folder / "precious")]).msg
    assert not (folder / "precious").exists()


@pytest.mark.parametrize(
    "options",
    [
        ["-DX=1"],
        ["-DX=2", "-UX", "-DX=(1 + 0)"],
        ["-DX=1", "-use_fast_math", "--ftz=true", "-prec-div=false", "--prec-sqrt=false"],
        ["-DX=1", "-fmad=false", "--maxrregcount=32", "-lineinfo", "-std=c++20"],
        ["-DX=1", "-lineinfo", "--extra-device-vectorization", "--restrict", "-w"],
        ["-DX=1", "-default-device", "-I/usr/include"],
    ],
)
def test_options_that_are_listed_reach_the_compiler_in_every_form(folder, options):
    assert compiled(folder, KERNEL.replace("1", "X") + "static_assert(X == 1);", options).cubin


def test_headers_of_the_toolkit_and_of_the_own_folder_are_found(folder):
    (folder / "sub" / "one.h").write_text('#include "two.h"\n#include "../three.h"\n')
    (folder / "sub" / "two.h").write_text("#define TWO 2\n")
    (folder / "three.h").write_text("#define THREE 3\n")
    code = "#include <cuda_fp16.h>\n" if header_folders() else ""
    code += (
        "#if __has_include(<one.h>)\n#include <one.h>\n#endif\nstatic_assert(TWO + THREE == 5);\n"
    )
    for option in ("-Isub", f"-I{folder}/sub", "-I./sub/"):
        assert compiled(folder, code + KERNEL, [option]).cubin
    assert compiled(folder, '#include "sub/one.h"\n' + KERNEL).cubin


@pytest.mark.slow
def test_a_compile_that_does_not_end_is_ended(folder, monkeypatch):
    monkeypatch.setattr(compiler_process, "_current", CompilerProcess(seconds=2))
    assert refused(folder, ENDLESS).msg == "the compiler took more than 2 s, and was ended (in k)"
    assert compiled(folder, "// and the next one is compiled\n" + KERNEL).cubin
    compiler_process.compiler_process().close()


@pytest.mark.slow
def test_a_compile_that_takes_all_memory_is_ended(folder, monkeypatch):
    monkeypatch.setattr(compiler_process, "_current", CompilerProcess(memory_bytes=400 << 20))
    assert "memory" in refused(folder, ENDLESS + "//").msg
    compiler_process.compiler_process().close()


def test_a_process_that_has_gone_is_started_again(folder, monkeypatch):
    monkeypatch.setattr(compiler_process, "_current", CompilerProcess())
    process = compiler_process.compiler_process()
    assert compiled(folder, "// one\n" + KERNEL).cubin
    process._process.kill()
    assert compiled(folder, "// two\n" + KERNEL).cubin
    process._process.stdin.close()
    process._process.stdin = open(os.devnull, "wb", buffering=0)  # noqa: PTH123, SIM115
    assert process._process.wait(5) == 0, "nothing is asked any more"
    process.close()


def test_a_fork_has_a_compiler_of_its_own(folder):
    assert compiled(folder, "// before\n" + KERNEL).cubin
    pid = os.fork()
    if pid == 0:
        ours = compiled(folder, "// in the fork\n" + KERNEL).cubin
        compiler_process.compiler_process().close()
        os._exit(0 if ours else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert compiled(folder, "// behind\n" + KERNEL).cubin


def test_once_the_kernels_of_a_build_are_asked_for_it_has_ended(folder):
    assert compiled(folder, "// last\n" + KERNEL).cubin
    pid = compiler_process.compiler_process()._process.pid
    source.kernels_made()
    worker.kernels_made()
    assert not Path(f"/proc/{pid}").exists()


def test_it_runs_in_a_folder_that_is_gone(folder):
    process = compiler_process.compiler_process()
    assert compiled(folder, "// here\n" + KERNEL).cubin
    where = os.readlink(f"/proc/{process._process.pid}/cwd")  # noqa: PTH115
    assert where.endswith(" (deleted)")
    assert not Path(where.removesuffix(" (deleted)")).exists()
