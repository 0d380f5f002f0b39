"""`gpulab --show`: the code of variants, what the compiler makes of their kernels, and what is
wrong with what.
"""

import json
import os
import re
import signal
import sys
import time
from hashlib import sha256

import psutil
import pytest
from scripted import CommandLine

from gpulab.features.kernels import compiler

MINE = '''
    """Mine: kernels of two widths, and one variant without any."""
    from gpulab import Scenario, Work
    from gpulab.cuda import CudaSource
    scenario = Scenario("mine", params={"block": 256, "rows": 2})
    cuda = CudaSource(r"""
    template <typename T, int ROWS>
    __global__ void copy(const T* in, T* out, int n) {
        const int i = blockIdx.x * blockDim.x + threadIdx.x;
        for (int row = 0; row < ROWS; ++row)
            if (i < n) out[row * n + i] = in[row * n + i];  // a comment that is so long that no terminal of 80 has room
    }
    """)

    @scenario.variant
    def narrow(lab, block, rows):
        """One float."""
        return Work(cuda.kernel(f"copy<float, {rows}>", threads=block))

    @scenario.variant
    def none(lab, block):
        """Nothing in CUDA C++."""
        return Work(lambda: None)

    @scenario.variant
    def wide(lab, block, rows):
        """Four at once."""
        return Work(cuda.kernel(f"copy<float4, {rows}>", threads=block))
'''


@pytest.fixture(scope="module")
def mine(module_lab):
    """What is printed by the arguments, each called once."""
    module_lab.write("mine.py", MINE)
    done = {}

    def show(what, *arguments):
        key = (what, *arguments)
        if key not in done:
            done[key] = module_lab.call_over(None, "--show", *key)
        finished = done[key]
        assert (finished.code, finished.stderr) == (0, ""), finished.stderr
        return finished.stdout.splitlines()

    return show


@pytest.fixture
def gpulab(lab, monkeypatch, capsys):
    """The same in this process."""
    lab.write("mine.py", MINE)
    return CommandLine(lab, monkeypatch, capsys, worker=("/the/command/must/not/run",))


def parts(lines):
    """The names of the variants whose code is shown."""
    return [found[1] for line in lines if (found := re.match(r"── (\w+)", line))]


@pytest.mark.slow
def test_a_lesson_that_ships_has_its_code_its_kernels_and_their_differences(module_lab):
    finished = module_lab.call("--show", "divergence")
    lines = finished.stdout.splitlines()
    assert (finished.code, finished.stderr) == (0, "")
    assert lines[0].startswith("divergence · Divergence:")
    assert parts(lines) == ["branch", "predicated", "sorted_branch", "sorted_predicated"]
    assert "       branch<512>, 256 threads a block" in lines
    said = {line.split()[0]: line for line in lines if " against " in line and "line" not in line}
    assert "against branch: divergent branches 1 → 0" in said["predicated"]
    assert "against predicated: divergent branches 0 → 1" in said["sorted_branch"]


def test_kernels_are_shown_with_what_the_compiler_made_of_them(mine):
    lines = mine("mine.py")
    assert parts(lines) == ["narrow", "none", "wide"]
    assert "copy<float, 2>, 256 threads a block" in lines
    assert lines.count("   7   template <typename T, int ROWS>") == 1
    table = {
        line.split()[0]: line.split()[1:] for line in lines if re.match(r"(narrow|wide) +\d", line)
    }
    assert table["wide"][1:] == ["0", "B", "0", "B", "100", "%"]
    assert table.keys() == {"narrow", "wide"}
    (difference,) = [line for line in lines if "against narrow" in line]
    assert difference.startswith("wide")
    assert (
        "128-bit loads 0 → 2; 32-bit loads 2 → 0; 128-bit stores 0 → 2; 32-bit stores 2 → 0"
        in difference
    )
    assert any("counted in the SASS for sm_90" in line for line in lines)


def test_one_variant_is_shown_beside_the_baseline(gpulab):
    for variant, shown in (("none", ["narrow", "none"]), ("narrow", ["narrow"])):
        finished = gpulab("--show", f"mine.py:{variant}")
        assert (finished.code, finished.stderr) == (0, "")
        assert parts(finished.stdout.splitlines()) == shown
        assert "against narrow: 128-bit loads" in finished.stdout, "what is compared stays"


def test_machine_code_marks_what_another_variant_does_not_have(gpulab):
    finished = gpulab("--show", "mine.py", "--sass")
    lines = finished.stdout.splitlines()
    assert (finished.code, finished.stderr) == (0, "")
    assert lines[0].endswith("· SASS for sm_90")
    assert [line.rstrip(" ─") for line in lines if line.startswith("──")] == [
        "── narrow · copy<float, 2> · + is not in wide",
        "── wide · copy<float4, 2> · + is not in narrow",
    ]
    assert sum(bool(re.match(r"\+ .*LDG\.E\.128", line)) for line in lines) == 2
    assert any(re.match(r"  .*EXIT", line) for line in lines), "both have it"


def test_ptx_is_that_of_the_kernel_alone(mine):
    lines = mine("mine.py:wide", "--ptx")
    assert lines[0].endswith("· PTX for sm_90")
    assert [line.rstrip(" ─") for line in lines if line.startswith("──")] == [
        "── wide · copy<float4, 2> · + is not in narrow"
    ]
    text = "\n".join(lines)
    assert re.search(r"\+ +ld\.global\S*\.v4\.", text)
    assert ".visible" not in text
    assert ".loc" not in text


@pytest.mark.parametrize("arguments", [["mine.py"], ["mine.py:wide", "--ptx"]])
def test_what_goes_to_a_pipe_has_whole_lines(mine, arguments):
    lines = mine(*arguments)
    assert all(line.isprintable() for line in lines)
    if arguments == ["mine.py"]:
        assert [line for line in lines if line.endswith("no terminal of 80 has room")]
        (difference,) = [line for line in lines if "against narrow" in line]
        assert len(difference) > 90


@pytest.mark.slow
def test_another_architecture_and_other_parameters_are_compiled(gpulab):
    finished = gpulab(
        "--show", "mine.py", "--arch", "sm_80", "--set", "rows=3", "--set", "block=64"
    )
    assert (finished.code, finished.stderr) == (0, "")
    assert "copy<float, 3>, 64 threads a block" in finished.stdout
    assert "128-bit loads 0 → 3" in finished.stdout
    assert "counted in the SASS for sm_80" in finished.stdout
    finished = gpulab("--show", "mine.py:wide", "--ptx", "--arch", "sm_80", "--set", "rows=3")
    assert "wide · copy<float4, 3> · " in finished.stdout
    assert "PTX for sm_80" in finished.stdout


def test_in_ascii_every_mark_is_one(gpulab):
    for arguments in ([], ["--ptx"]):
        finished = gpulab("--show", "mine.py", "--ascii", *arguments)
        assert finished.code == 0
        assert finished.stdout.isascii()
        assert "-- narrow" in finished.stdout


def test_a_lesson_without_kernels_is_shown_without_a_compiler(gpulab, monkeypatch):
    monkeypatch.setattr("gpulab.headless.show.read_kernel", None)
    finished = gpulab("--show", "batched_matmul")
    assert (finished.code, finished.stderr) == (0, "")
    assert len(parts(finished.stdout.splitlines())) >= 2
    assert "kernels of a variant" not in finished.stdout


def test_without_a_compiler_a_lesson_that_ships_has_what_was_kept(gpulab, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    compiler._compile.cache_clear()
    digest = sha256((gpulab.lab.folder / "mine.py").read_bytes()).hexdigest()
    narrow, wide = (
        [{"name": "copy", "arch": "sm_90", "registers": registers}] for registers in (7, 9)
    )
    (tmp_path / "kernels.json").write_text(json.dumps({digest: {"narrow": narrow, "wide": wide}}))
    monkeypatch.setattr("gpulab.catalog.kernels._SHIPPED", tmp_path / "kernels.json")
    finished = gpulab("--show", "mine.py")
    assert finished.code == 0
    assert "against narrow: registers 7 → 9" in finished.stdout
    assert "pip install 'gpulab[nvrtc]'" in finished.stderr
    finished = gpulab("--show", "mine.py", "--set", "rows=3")
    assert finished.code == 0
    assert "copy<float, 3>" in finished.stdout
    assert "registers" not in finished.stdout, "that is of other kernels"
    for option in ("--ptx", "--sass"):
        finished = gpulab("--show", "mine.py", option)
        assert (finished.code, finished.stdout) == (2, "")
        assert "pip install 'gpulab[nvrtc]'" in finished.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mine.py:nothing"], "mine has no variant nothing; it has narrow, none, wide"),
        (["mine.py:"], "mine.py"),
        (["mine.py", "--set", "n=1"], "its parameters: block=256, rows=2"),
        (["mine.py", "--set", "rows=x"], "rows takes a whole number"),
        (["mine.py", "--arch", "sm_12"], "sm_90"),
        (
            ["mine.py:none", "--ptx"],
            "no CUDA C++ kernel in it, and Triton compiles when it runs",
        ),
        (["batched_matmul", "--sass"], "no CUDA C++ kernel in it"),
        (["functions.py"], "functions"),
        (["syntax.py"], "line 1"),
    ],
)
def test_mistakes_say_what_to_write(gpulab, lab, arguments, message):
    lab.write("functions.py", "def step(): pass\n")
    lab.write("syntax.py", "def step(:\n")
    finished = gpulab("--show", *arguments)
    assert (finished.code, finished.stdout) == (2, "")
    assert message in " ".join(finished.stderr.split())
    assert "Traceback" not in finished.stderr


@pytest.mark.parametrize("option", [[], ["--ptx"]])
def test_a_kernel_that_does_not_compile_has_its_line_and_what_the_compiler_said(
    gpulab, lab, option
):
    lab.write(
        "mine.py", MINE.replace("int n) {", "int n) {\n        [bold]missing; // \x1b[31mred")
    )
    finished = gpulab("--show", "mine.py", *option)
    assert (finished.code, finished.stdout) == (2, "")
    assert "line 9 of mine.py: " in finished.stderr.splitlines()[-1]
    assert "[bold]missing; // red" in finished.stderr
    assert "detected in the compilation" in finished.stderr
    assert "Traceback" not in finished.stderr
    assert "\x1b" not in finished.stderr


ENDLESS = """
    template <int DEEP, long PATH> struct A {
        static const int v = A<DEEP - 1, 2 * PATH>::v + A<DEEP - 1, 2 * PATH + 1>::v;
    };
    template <long PATH> struct A<0, PATH> { static const int v = 0; };
    template <typename T, int ROWS>
    __global__ void copy(const T* in, T* out, int n) { n = A<60, 0>::v; }
    """


@pytest.mark.slow
def test_a_compile_that_does_not_end_ends_with_the_command(lab):
    lab.write("mine.py", re.sub(r'r""".*?"""', lambda _: f'r"""{ENDLESS}"""', MINE, flags=re.S))
    process = lab.start("--show", "mine.py", start_new_session=True)
    deadline = time.monotonic() + 60
    while psutil.Process(process.pid).cpu_times().user < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=10)
    assert process.returncode == 130
    assert stderr.decode().strip() == "gpulab: --show mine.py: interrupted"


def test_nothing_of_the_file_runs(gpulab, lab):
    lab.write("mine.py", MINE + f"\n    open({str(lab.folder / 'ran')!r}, 'w')\n    1 / 0\n")
    for option in ([], ["--ptx"]):
        assert gpulab("--show", "mine.py", *option).code == 0
    assert not (lab.folder / "ran").exists()
