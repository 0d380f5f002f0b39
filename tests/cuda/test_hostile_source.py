"""A scenario's CUDA C++ may be anybody's: the compiler writes no file for it, reads none but headers
of the toolkit and of the scenario's folder, and ends.
"""

import os
import time
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
SECRET = "a_secret_word"


@pytest.fixture
def folder(tmp_path):
    """The scenario's folder, beside which a file lies that is none of its business."""
    (tmp_path / "secret.h").write_text(f"{SECRET} {SECRET};\n")
    own = tmp_path / "own"
    (own / "sub").mkdir(parents=True)
    (own / "mine.py").write_text("")
    return own


def compiled(folder, code=KERNEL, options=(), name="k"):
    return compile_kernel(
        KernelText(name, code, 10, tuple(options)), "sm_90", str(folder / "mine.py")
    )


def refused(folder, code=KERNEL, options=(), name="k"):
    """What it says; nothing of the other file is in it."""
    with pytest.raises(CompileError) as error:
        compiled(folder, code, options, name)
    said = "\n".join([error.value.msg, *getattr(error.value, "__notes__", ())])
    assert SECRET not in said
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
    assert "an option that is not allowed; those are -D, -U, -I, --std" in error.msg
    assert path.read_text() == "precious"
    assert sorted(file.name for file in folder.parent.iterdir()) == ["own", "precious", "secret.h"]


@pytest.mark.parametrize("option", ["--create-pch", "-include", "--fdevice-time-trace", "-D"])
def test_nor_where_its_value_stands_behind_it(folder, option):
    assert "not allowed" in refused(folder, options=[option, str(folder / "precious")]).msg
    assert not (folder / "precious").exists()


@pytest.mark.parametrize(
    "options",
    [
        ["-DX=1"],
        ["-D", "X=1"],
        ["-D X=1"],
        ["--define-macro=X=1"],
        ["--define-macro", "X=1"],
        ["--define-macro X=1"],
        ["-DX=2", "-UX", "-DX=(1 + 0)"],
        ["-DX=1", "-use_fast_math", "--ftz=true", "-prec-div=false", "--prec-sqrt", "false"],
        ["-DX=1", "-fmad=false", "--maxrregcount=32", "-lineinfo", "-std=c++20"],
        ["-DX=1", "--generate-line-info", "--extra-device-vectorization", "--restrict", "-w"],
    ],
)
def test_options_that_are_listed_reach_the_compiler_in_every_form(folder, options):
    assert compiled(folder, KERNEL.replace("1", "X") + "static_assert(X == 1);", options).cubin


@pytest.mark.parametrize(
    "directive",
    [
        '#include "{}"',
        "#include <{}>",
        '#include "../secret.h"',
        '#include "sub/../../secret.h"',
        "#include <../secret.h>",
        '%:include "{}"',
        '??=include "{}"',
        '#inc\\\nlude "{}"',
        '#inc??/\nlude "{}"',
        '#/**/include "{}"',
        '#include/**/"{}"',
        '"/*"\n#/*x*/include "{}"',
        '/*\n*/ # \f include "{}"',
        '#include_next "{}"',
        '#define SECRET "{}"\n#include SECRET',
        "#include __FILE__",
        '#embed "{}"',
        'import "{}";\n#import "{}"',
        '#if __has_include("{}")\n#error there\n#endif',
        '#include "link.h"',
        '#include "linked/secret.h"',
        '#include "sub/inner.h"',
        '#include "zero.h"',
        '#include "/dev/zero"',
        '#include "/etc/passwd"',
        '#include "pipe.h"',
        '#include "device.h"',
        '#include ".env"',
        '#include "large.h"',
    ],
)
@pytest.mark.parametrize("standard", ["c++14", "c++20"])
def test_no_file_of_somebody_else_is_included(folder, directive, standard):
    secret = folder.parent / "secret.h"
    (folder / "link.h").symlink_to(secret)
    (folder / "linked").symlink_to(folder.parent)
    (folder / "device.h").symlink_to("/dev/zero")
    (folder / "sub" / "inner.h").write_text('#include "../../secret.h"\n')
    (folder / "zero.h").write_bytes(b'#\0include "%s"\n' % bytes(secret))
    (folder / ".env").write_text(SECRET)
    with (folder / "large.h").open("wb") as large:
        large.truncate(1 << 21)
    os.mkfifo(folder / "pipe.h")
    code = f"{KERNEL}{directive.format(secret, secret)}\n"
    error = refused(folder, code, [f"-std={standard}"])
    assert "in the compilation of" not in str(error.__notes__ if error.msg is None else error.msg)


@pytest.mark.skipif(
    not any((folder / "thrust").is_dir() for folder in map(Path, header_folders())),
    reason="no thrust among the headers of the toolkit",
)
@pytest.mark.parametrize("header", ["thrust/", "cuda/../thrust/", "./thrust/", "{}/thrust/"])
def test_no_header_of_the_toolkit_includes_what_a_macro_of_the_source_names(folder, header):
    start = f"#include <{header.format(header_folders()[-1])}"
    code = f"""{start}detail/config/host_system.h>
#undef __THRUST_HOST_SYSTEM_ROOT
#define __THRUST_HOST_SYSTEM_ROOT {folder.parent}
#define detail
#define gather secret
{start}system/detail/adl/gather.h>
"""
    assert "thrust and cub include what macros name" in refused(folder, code + KERNEL).msg


def test_a_name_includes_nothing_either(folder):
    assert "outside of" in refused(folder, name=f'k\n#include "{folder.parent}/secret.h"\n').msg


@pytest.mark.parametrize("option", ["-I/etc", "-I..", "-I.", "-I", "--include-path=linked"])
def test_folders_of_headers_are_the_scenarios_own(folder, option):
    (folder / "linked").symlink_to(folder.parent)
    (folder / "sub" / "own.h").write_text("#define X 1\n")
    if option == "-I.":
        assert compiled(folder, '#include "sub/own.h"\n' + KERNEL, [option]).cubin
    else:
        refused(folder, options=[option])


def test_headers_of_the_toolkit_and_of_the_own_folder_are_found(folder):
    (folder / "sub" / "one.h").write_text('#include "two.h"\n#include "../three.h"\n')
    (folder / "sub" / "two.h").write_text("#define TWO 2\n")
    (folder / "three.h").write_text("#define THREE 3\n")
    code = "#include <cuda_fp16.h>\n" if header_folders() else ""
    code += (
        "#if __has_include(<one.h>)\n#include <one.h>\n#endif\nstatic_assert(TWO + THREE == 5);\n"
    )
    for option in ("-Isub", f"-I{folder}/sub", "--include-path=./sub/"):
        assert compiled(folder, code + KERNEL, [option]).cubin
    assert compiled(folder, '#include "sub/one.h"\n' + KERNEL).cubin


def test_what_is_refused_has_its_line(folder):
    assert refused(folder, KERNEL + '\n#include "/etc/passwd"\n').lineno == 12


def test_a_source_of_many_directives_is_judged_at_once(folder):
    begun = time.process_time()
    for code in (
        "#include <" * 90_000,
        '#include "a.h"\n' * 60_000,
        "#" * 900_000,
        "#/*" * 300_000,
    ):
        refused(folder, code)
    refused(folder, "".join(f'#include "{number}.h"\n' for number in range(40_000)))
    assert time.process_time() - begun < 20


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
