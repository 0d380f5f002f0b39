"""`gpulab.run` and `gpulab.load`: the report of the command line, for scripts and notebooks."""

import doctest
import importlib
import io
import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import guide_examples
import pytest
from found import finding
from scripted import SCENARIO, CommandLine
from workers import WORKERS

import gpulab
from gpulab.core.events import RunEnded
from gpulab.core.run_file import read_run_file
from gpulab.core.statuses import Status
from gpulab.session.run import Run
from gpulab.session.session import Session

CORES = len(os.sched_getaffinity(0))


@pytest.fixture
def command(lab, monkeypatch, capsys):
    lab.write("mine.py", SCENARIO)
    return CommandLine(lab, monkeypatch, capsys)


@pytest.fixture(scope="module")
def runs():
    """Reports of examples: those with the same arguments are made once."""
    return {}


@pytest.fixture
def examples(lab, monkeypatch, runs):
    """In the folder of a lab, where every run is a smoke run on the CPU, over a worker that has
    imported torch.
    """
    over_worker = partial(Session, command=WORKERS.command)
    monkeypatch.setattr("gpulab.session.launch.Session", over_worker)
    measure = gpulab.run

    def run(scenario, **options):
        kept = {"params": options.get("params"), "device": "cpu", "smoke": True}
        key = f"{scenario} {kept}"
        if key not in runs:
            runs[key] = measure(scenario, **kept)
        return runs[key]

    for name, value in lab.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(lab.folder)
    monkeypatch.syspath_prepend(lab.folder)
    monkeypatch.setattr(gpulab, "run", run, raising=False)


@pytest.mark.slow
def test_the_notebooks_of_the_guide_run(examples, lab, capsys):
    for cells in guide_examples.notebooks():
        names = {}
        for cell in cells:
            if (named := guide_examples.file_of(cell)) is not None:
                lab.write(*named)
                continue
            exec(cell, names)
            printed = capsys.readouterr().out
            for comment in re.findall(r"print\(.*\)  # (.*)", cell):
                assert comment in printed
    assert (lab.folder / "rows.png").read_bytes().startswith(b"\x89PNG")
    assert (lab.folder / "loop.svg").is_file()


def test_the_example_of_the_package_holds(examples):
    (example,) = doctest.DocTestFinder(recurse=False).find(gpulab, "gpulab")
    runner = doctest.DocTestRunner()
    runner.run(example, clear_globs=False)
    assert (runner.failures, runner.tries) == (0, len(example.examples))
    report = example.globs["report"]
    statuses = {variant.name: variant.status for variant in report.variants}
    assert statuses == {"loop": Status.OK, "graphed": Status.SKIPPED, "bmm": Status.OK}
    assert (report.smoke, report.under_way, report.failures) == (True, False, [])
    assert set(report.environment) >= {"gpulab", "python", "torch", "driver"}
    assert report.comparison("bmm").pairs > 0
    # Without a GPU the host is the telemetry.
    assert report.telemetry.no_gpu_reason.code == "run_on_cpu"
    assert {"worker_cpu", "machine_cpu", "rss"} <= set(report.telemetry.last)
    assert report.variant("bmm").solo_run is None


def test_a_report_has_the_shape_of_a_run_in_the_json(command):
    report = gpulab.run(
        "mine.py", time_s=0.2, telemetry="off", params={"n": 50}, required_speedup=3.0
    )
    process = command(
        "--run",
        "mine.py",
        "--time",
        "0.2",
        "--set",
        "n=50",
        "--fail-below",
        "3",
        "--json",
        "out.json",
    )
    (run,) = process.result["runs"]
    other = json.loads(gpulab.to_json(report))
    assert shape(other) == shape(run)
    assert (other["params"], other["exit_code"], other["reason"]) == (
        run["params"],
        run["exit_code"],
        run["reason"],
    )
    assert report.params["n"] == 50
    assert report.reason.code == "below_required"


def shape(value):
    """Keys, and what is a list."""
    if isinstance(value, dict):
        left_out = ("values", "telemetry", "findings", "explanations", "earlier")
        return {key: shape(member) for key, member in value.items() if key not in left_out}
    return [shape(member) for member in value] if isinstance(value, list) else None


def test_a_failure_is_a_report(command, lab):
    failed = gpulab.run(
        "mine.py", time_s=0.2, telemetry="off", params={"fails_at": 100}, output="run.jsonl"
    )
    assert (failed.exit_code, failed.variant("after").status) == (3, "failed")
    assert gpulab.load("run.jsonl") == failed
    lab.write("cuda.py", SCENARIO.replace('"mine",', '"mine", needs=("cuda",),'))
    unmet = gpulab.run(lab.folder / "cuda.py", device="cpu")
    assert (unmet.exit_code, unmet.reason.values["need"], unmet.run_file) == (3, "cuda", "")


SECONDS = "write a number of seconds above 0 and at most 604800"
PARAMETERS = "its parameters: n=100, m='x', fails_at=0"
WRONG = [
    ({"device": "tpu"}, "device='tpu': write cpu, cuda or cuda:N"),
    (
        {"device": "cuda:7"},
        "cuda:7 is not available here (cpu is): no NVIDIA device in this machine",
    ),
    ({"params": {"n": True}}, "n=True: n takes a whole number, as in n=100"),
    ({"params": {"q": 1}}, f"mine has no parameter 'q'; {PARAMETERS}"),
    ({"params": "n=1"}, "params='n=1': write a mapping of names to values, such as {'n': 64}"),
    ({"threads": 9999}, f"9999 threads: this process may use {CORES} cores"),
    ({"time_s": 0}, f"time_s=0: {SECONDS}"),
    ({"smoke": "yes"}, "smoke='yes': write True or False"),
    ({"trace": "no/x.json"}, "trace='no/x.json': write FILE.json, in a folder that exists"),
    ({"output": "mine.py"}, "output='mine.py': it exists, and runs are never overwritten"),
    ({"output": "x.json", "trace": "x.json"}, "output='x.json': that is where the trace goes"),
    ({"scenario": "two"}, "two stands for 2 scenarios: name one"),
    ({"scenario": None}, "scenario=None: write a scenario's name, a file, or a function"),
    (
        {"scenario": "steps.py:step", "params": {"n": 1}},
        "a plain function has no parameters, and no 'n'",
    ),
]
"""Arguments of `gpulab.run` that are no usage of it, and what it says."""


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_a_wrong_argument_is_named_with_what_to_write(
    command, lab, monkeypatch, arguments, message
):
    monkeypatch.setattr("gpulab.session.settings.missing", lambda need: finding("no_gpu"))
    lab.write("steps.py", STEPS)
    (lab.folder / "two").mkdir()
    for name in ("a", "b"):
        lab.write(f"two/{name}.py", SCENARIO)
    with pytest.raises(gpulab.UsageError) as raised:
        gpulab.run(**{"scenario": "mine.py", **arguments})
    assert message in str(raised.value)
    assert not list(lab.folder.glob("**/*.jsonl"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing_such", "there is no scenario 'nothing_such'"),
        ("no.py", "there is no file no.py"),
    ],
)
def test_a_name_that_nothing_has_is_a_lookup_error_that_can_be_printed(command, name, message):
    with pytest.raises(gpulab.ScenarioNotFoundError) as raised:
        gpulab.run(name)
    assert str(raised.value) == message


STEPS = """
    import functools

    def step(): ...
    def takes(x, *, y=1): ...
    def nest():
        def inner(): ...
        return inner
    def wrapped(function):
        @functools.wraps(function)
        def wrapper(): ...
        return wrapper
    @wrapped
    def decorated(): ...
    fast = wrapped(step)
    square = lambda: 1
    class Steps:
        def method(self): ...
"""


@pytest.fixture
def steps(command, lab, monkeypatch):
    """The module of some functions, imported from its file."""
    lab.write("steps.py", STEPS)
    monkeypatch.syspath_prepend(lab.folder)
    yield importlib.import_module("steps")
    del sys.modules["steps"]


def test_a_function_runs_in_its_file(steps):
    for function in (steps.step, steps.decorated):
        report = gpulab.run(function, time_s=0.2, telemetry="off")
        assert report.scenario == f"steps:{function.__name__}"
        assert report.run_file


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("square", "a lambda has no name: define a function with def, in a file"),
        (
            "nest()",
            "it is defined inside another function or class: move it to the top of its file",
        ),
        ("len", "it is no Python function: define one with def, in a file"),
        ("takes", "it takes arguments (x): arguments=FUNCTION makes them, or give defaults"),
        ("fast", "step of its file is another object: write FILE:NAME"),
        (
            "cell",
            "it is defined at a prompt or in a notebook: write its cell to a file (%%writefile)",
        ),
        (
            "typed",
            "it is defined at a prompt or in a notebook: write its cell to a file (%%writefile)",
        ),
    ],
)
def test_a_function_that_no_other_process_finds_says_why(steps, name, reason):
    exec(compile("def cell(): ...", "/tmp/ipykernel_1/2.py", "exec"), vars(steps))
    exec("def typed(): ...", vars(steps))
    with pytest.raises(gpulab.UsageError) as raised:
        gpulab.run(eval(name, vars(steps)))
    assert str(raised.value).endswith(f">: {reason}") or str(raised.value).endswith(f"): {reason}")


def test_a_script_that_runs_itself_is_stopped_in_the_worker(command, monkeypatch):
    monkeypatch.setenv("GPULAB_WORKER", "x")
    with pytest.raises(gpulab.UsageError, match="below if __name__ == '__main__'"):
        gpulab.run("mine.py")


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("no.jsonl", gpulab.RunFileError, "no.jsonl: No such file or directory"),
        (".", gpulab.RunFileError, ".: not a regular file"),
        ("/dev/zero", gpulab.RunFileError, "/dev/zero: not a regular file"),
        ("empty", gpulab.RunFileError, "empty has no complete line: the run ended before it began"),
        (
            "mine.py",
            gpulab.RunFileError,
            "mine.py is not a run file: its first line is no gpulab.run header",
        ),
        ("", gpulab.UsageError, "path='': write the name of a file"),
    ],
)
def test_what_cannot_be_loaded_says_why(command, lab, path, error, message):
    lab.write("empty", "")
    with pytest.raises(error) as raised:
        gpulab.load(path)
    assert (type(raised.value), str(raised.value)) == (error, message)


def test_a_name_that_the_package_lacks_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        _ = gpulab.lode


def test_what_the_commands_compare_and_remember_is_there_for_scripts(command):
    for _ in range(2):
        gpulab.run("mine.py", time_s=0.2, telemetry="off")
    compared = gpulab.compare("mine~1", "mine")
    assert [each.scenario for each in compared.comparisons] == ["mine"]
    (past,) = gpulab.history("mine")
    assert (past.runs, len(past.entries)) == (2, 2)
    with pytest.raises(gpulab.UsageError, match="it has not run here: mine did"):
        gpulab.history("other")


def test_folders_of_the_run_file_are_made_as_by_the_command_line(command, lab):
    report = gpulab.run("mine.py", time_s=0.2, telemetry="off", output="new/folder/run.jsonl")
    assert report.run_file == "new/folder/run.jsonl"
    files = ("--output", "other/folder/run.jsonl")
    command("--run", "mine.py", "--time", "0.2", "--telemetry", "off", *files)
    for folder in ("new", "other"):
        assert (lab.folder / folder / "folder" / "run.jsonl").is_file()


def test_progress_is_shown_where_somebody_sees_it(command, capsys, monkeypatch):
    monkeypatch.setattr("gpulab.session.drive.TICK_S", 0.001)

    def run(progress):
        report = gpulab.run("mine.py", time_s=0.2, telemetry="off", progress=progress)
        assert report.comparison("after").pairs > 0
        return capsys.readouterr()

    assert run(None) == run(False) == ("", "")
    shown = run(True)
    assert shown.out == ""
    assert "mine · " in shown.err
    assert "\x1b" not in shown.err
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    run(False)
    assert terminal.getvalue() == ""
    run(None)
    assert "mine · " in terminal.getvalue()
    assert "\x1b" in terminal.getvalue()
    terminal.truncate(0)
    with ThreadPoolExecutor() as pool:  # where no handler of a signal can be set
        pool.submit(run, None).result()
    assert "mine · " in terminal.getvalue()


class Cell:
    """Below a cell: what is displayed there, one after the other."""

    def __init__(self):
        self.lines = []

    def display(self, content, *, raw, display_id):
        self.update(content, raw=raw)
        return self

    def update(self, content, *, raw):
        assert raw
        self.lines.append(content["text/plain"])


@pytest.mark.slow
def test_in_a_notebook_a_line_below_the_cell_says_how_far_it_is(command, capsys, monkeypatch):
    monkeypatch.setattr("gpulab.session.drive.TICK_S", 0.001)
    cell = Cell()
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", cell)
    report = gpulab.run("mine.py", time_s=0.2, telemetry="off")
    assert any(line.startswith("mine · ") for line in cell.lines)
    assert cell.lines[-1] == repr(report)
    assert capsys.readouterr() == ("", "")
    cell.lines.clear()
    gpulab.run("mine.py", time_s=0.2, telemetry="off", progress=False)
    shell.kernel = None  # IPython on a terminal
    gpulab.run("mine.py", time_s=0.2, telemetry="off")
    assert cell.lines == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupt_or_an_error_stops_the_run_and_its_file_is_whole(
    error, lab, monkeypatch, capsys
):
    lab.write("mine.py", SCENARIO)
    CommandLine(
        lab, monkeypatch, capsys, worker=(sys.executable, "-c", "import time; time.sleep(600)")
    )
    monkeypatch.setattr("gpulab.session.session._SHUTDOWN_TIMEOUT_S", 0.3)

    def interrupt(run):
        raise error

    monkeypatch.setattr(Run, "poll", interrupt)
    with pytest.raises(error):
        gpulab.run("mine.py", telemetry="off", output="run.jsonl")
    assert isinstance(read_run_file(lab.folder / "run.jsonl").events[-1], RunEnded)
    assert lab.none_left()
