"""NVTX ranges arrive at a tool that listens, and nobody makes any where none does."""

import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("nvtx")
MARKED = """
    import sys
    import gpulab, nvtx

    with nvtx.annotate("of the program"):
        gpulab.step()
    gpulab.step()
    gpulab.step()
"""
QUIET = """
    import sys
    import gpulab

    gpulab.step()
    gpulab.step()
    print("nvtx" in sys.modules)
"""
TRAIN = """
    import nvtx
    import torch

    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        with nvtx.annotate("of the program"):
            model(torch.ones(1, 4)).sum().backward()
            optimizer.step()
"""
SCENARIO = '''
    """Ranges: a phase."""

    from gpulab import Scenario, Work

    scenario = Scenario(topic="tests")

    @scenario.variant
    def marked(lab):
        """With a phase."""
        def step():
            with lab.phase("data"):
                return sum(range(1000))
        return Work(step)

    @scenario.variant
    def unmarked(lab):
        """Without one."""
        return Work(lambda: sum(range(1000)))
'''


@pytest.fixture(scope="module")
def listener(tmp_path_factory):
    """A library that a process with NVTX loads."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = tmp_path_factory.mktemp("listener") / "listener.so"
    source = Path(__file__).with_name("listener.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    return library


@pytest.fixture
def heard(lab, listener):
    """The lines that the library wrote."""
    log = lab.folder / "log"
    lab.env |= {"NVTX_INJECTION64_PATH": str(listener), "LISTENER_LOG": str(log)}
    return lambda: log.read_text().splitlines() if log.exists() else []


def python(lab, text):
    return subprocess.run(
        [sys.executable, lab.write("program.py", text)],
        env=lab.env,
        cwd=lab.folder,
        capture_output=True,
        check=True,
    ).stdout.decode()


def test_steps_have_ranges_that_leave_those_of_the_program_alone(lab, heard):
    python(lab, MARKED)
    assert heard() == [
        "( of the program",
        "+ gpulab:step",
        ") ",
        "- gpulab:step",
        "+ gpulab:step",
        "- gpulab:step",
        "+ gpulab:step",
    ]


def test_the_steps_that_following_finds_have_ranges(lab, heard):
    program = lab.write("train.py", TRAIN)
    target = lab.folder / "r.json"
    done = lab.call("--run", "--json", target, "--telemetry", "off", "--", sys.executable, program)
    assert done.code == 0, done.stderr
    counts = Counter(heard())
    assert counts["+ gpulab:step"] == counts["( of the program"] == counts[") "] == 5
    assert counts["- gpulab:step"] == 4  # the last one goes on until the program ends
    # torch's profiler would not get the kernels that the other tool gets
    assert "no profile" not in done.stderr


def test_variants_steps_and_phases_of_a_scenario_have_ranges(lab, heard):
    path = lab.write("ranges.py", SCENARIO)
    done = lab.run(path, "--smoke", fresh=True)
    assert done.code == 0, done.stderr
    ranges = Counter(heard())
    for name in ("marked", "unmarked", "step", "data"):
        assert ranges[f"+ gpulab:{name}"] == ranges[f"- gpulab:{name}"] > 0, ranges
    assert ranges["+ gpulab:data"] < ranges["+ gpulab:step"]
    assert all(re.match(r"[+-] gpulab:", line) for line in heard())


@pytest.mark.parametrize(
    ("variables", "listens"),
    [
        ({}, False),
        ({"NVTX_INJECTION64_PATH": "/usr/lib/libcupti.so.13"}, False),
        ({"NSYS_PROFILING_SESSION_ID": "1"}, True),
        ({"NV_NSIGHT_INJECTION_TRANSPORT_TYPE": "uds"}, True),
    ],
)
def test_nothing_is_imported_where_no_tool_listens(lab, variables, listens):
    lab.env |= variables
    assert python(lab, QUIET) == f"{listens}\n"


def test_without_the_package_there_are_no_ranges_and_no_error(lab, heard):
    assert python(lab, f"import sys\nsys.modules['nvtx'] = None\n{QUIET}".replace("\n    ", "\n"))
    assert heard() == []
