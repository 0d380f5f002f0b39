"""What the tests share: the program as a user runs it, and proof that it leaves no process
behind.
"""

import gc
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import uuid
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.configuration import set_hypothesis_home_dir
from workers import MARK, WORKERS

from gpulab.cli import main
from gpulab.core.run_file import read_run_file
from gpulab.headless.output import PlainConsole
from gpulab.report.build import fold_all
from gpulab.session.session import Session

TESTS = Path(__file__).parent
sys.path += [  # what tests of several folders import; all else stands beside this file
    str(folder)
    for folder in (
        TESTS / "features" / "compare",
        TESTS / "gauntlet",
        TESTS / "scenarios" / "cuda",
        TESTS.parent / "benchmarks",
    )
]
GPULAB = (sys.executable, "-m", "gpulab")
_HANDLERS = {
    signal.SIGHUP: signal.SIG_DFL,
    signal.SIGQUIT: signal.SIG_DFL,
    signal.SIGINT: signal.default_int_handler,
}
HOSTILE_SCENARIO = """
\"\"\"[red]Recorded[/red]: x.

[bold]lesson \\x1b[31m.\"\"\"
from gpulab import Scenario, Work
scenario = Scenario('[i]topic')

@scenario.variant
def good(lab):
    '''[b]summary.'''
    return Work(lambda: None)

@scenario.variant
def bad(lab):
    return Work(lambda: None)
"""
# Matplotlib looks through all fonts of the machine where its cache is empty.
_MATPLOTLIB = str(Path(tempfile.gettempdir()) / f"gpulab-matplotlib-{os.getuid()}")
# Each of hundreds of processes would compile the package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# No examples are written into the checkout, and one may take long beside other work. Each run draws
# other ones, so fewer than usual will do.
set_hypothesis_home_dir(Path(tempfile.gettempdir()) / f"gpulab-hypothesis-{os.getuid()}")
settings.register_profile(
    "gpulab", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("gpulab")


@dataclass
class Finished:
    """A finished command, with its JSON result and its run file where it made them."""

    code: int
    stdout: str
    stderr: str
    run_file: Path
    result: dict = field(default_factory=dict)

    @property
    def run(self):
        return self.result["runs"][0]

    def variant(self, name):
        return next(variant for variant in self.run["variants"] if variant["name"] == name)

    def verdict(self, name):
        return self.comparison(name).get("verdict")

    def comparison(self, name):
        """The first comparison of a variant; empty where there is none."""
        return next((entry for entry in self.run["comparisons"] if entry["variant"] == name), {})

    def findings(self, code, run=0):
        """What weakens the result, of that code."""
        return [
            finding for finding in self.result["runs"][run]["findings"] if finding["code"] == code
        ]

    def explanations(self, code, run=0):
        """What explains the result, of that code."""
        return [
            finding
            for finding in self.result["runs"][run]["explanations"]
            if finding["code"] == code
        ]

    @property
    def state(self):
        return fold_all(read_run_file(self.run_file).events)


def printed(renderable, width=80, *, ascii_only=False):
    """What a terminal of that width shows of it."""
    file = io.StringIO()
    console = PlainConsole(file, ascii_only=ascii_only)
    console.width = width
    console.print(renderable)
    return file.getvalue()


def wait_for(condition, within=60):
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


class Lab:
    """Runs `gpulab` as a user does, in a folder of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.mark = uuid.uuid4().hex
        self.start_options = {}
        self.timeout_s = 100
        homes = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("STATE", "CACHE")}
        homes["MPLCONFIGDIR"] = _MATPLOTLIB
        self.env = {**os.environ, MARK: self.mark, **homes, "NO_COLOR": "1"}

    def write(self, name, text):
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return path

    def start(self, *arguments, **options):
        usual = {
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "cwd": self.folder,
            "env": self.env,
        }
        options = {**usual, **self.start_options, **options}
        return subprocess.Popen([*GPULAB, *map(str, arguments)], **options)

    def call(self, *arguments, **options):
        process = self.start(*arguments, **options)
        stdout, stderr = process.communicate(timeout=self.timeout_s)
        return Finished(
            process.returncode, stdout.decode(), stderr.decode(), self.folder / "run.jsonl"
        )

    def call_over(self, worker, *arguments):
        """The same command in this process, over workers of that command."""
        printed = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
        with (
            pytest.MonkeyPatch.context() as patch,
            redirect_stdout(printed[0]),
            redirect_stderr(printed[1]),
        ):
            for name, value in self.env.items():
                patch.setenv(name, value)
            patch.chdir(self.folder)
            patch.setattr("gpulab.session.launch.Session", partial(Session, command=worker))
            try:
                code = main([str(argument) for argument in arguments])
            except SystemExit as ended:
                code = ended.code
            texts = []
            for stream in printed:
                stream.flush()
                texts.append(stream.buffer.getvalue().decode())
        return Finished(code, *texts, self.folder / "run.jsonl")

    def run(self, what, *arguments, time_s="0.3", fresh=False):
        """`gpulab --run what` with its JSON on stdout and its run file in `run.jsonl`.

        `fresh`: as a user starts it, with a worker that imports torch: of one run in each area.
        """
        run_file = self.folder / "run.jsonl"
        run_file.unlink(missing_ok=True)
        # Telemetry has tests of its own; elsewhere each variant's solo run would only take time.
        quiet = () if "--telemetry" in arguments else ("--telemetry", "off")
        # So has the profile, whose second process takes as long again.
        quiet += (
            () if {"--profile", "--trace", "--memory"} & set(arguments) else ("--profile", "off")
        )
        options = (
            "--device",
            "cpu",
            "--time",
            time_s,
            "--json",
            "--verbose",
            "--output",
            run_file,
            *quiet,
            *arguments,
        )
        if fresh:
            finished = self.call("--run", what, *options)
        else:
            finished = self.call_over(WORKERS.command, "--run", what, *options)
        if finished.stdout:
            finished.result = json.loads(finished.stdout)
        return finished

    def processes(self):
        """Command lines of every live process that this lab started, however far away it went."""
        commands = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    environment = (entry / "environ").read_bytes()
                    forked = int(entry.name) != WORKERS.pid and WORKERS.mark in environment
                    if forked or self.mark.encode() in environment:
                        commands[int(entry.name)] = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
        return commands

    def none_left(self, within=5.0):
        """Whether all processes are gone, at the latest after `within` seconds."""
        end = time.monotonic() + within
        while time.monotonic() < end:
            if not self.processes():
                return True
            time.sleep(0.05)
        return not self.processes()


def pytest_collection_finish():
    """A collection of garbage walks over all that the tests have imported: few and without it."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def pytest_configure(config):
    """Signals that nohup or a shell's & has ignored would be ignored by every program under test
    too.
    """
    starts_workers = config.getoption("numprocesses", None) and not hasattr(config, "workerinput")
    if not starts_workers:  # which goes on when the terminal is closed
        for number, handler in _HANDLERS.items():
            if signal.getsignal(number) == signal.SIG_IGN:
                signal.signal(number, handler)


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory):
    """Runs that tests make in their own process are no history of the user's, whose keys and theme
    are not theirs.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("STATE", "CONFIG"):
            patch.setenv(f"XDG_{name}_HOME", str(tmp_path_factory.mktemp(name.lower())))
        yield
    WORKERS.close()


@pytest.fixture
def lab(tmp_path):
    yield from _lab(tmp_path)


@pytest.fixture(scope="module")
def module_lab(tmp_path_factory):
    """A lab for runs that several tests of a module read."""
    yield from _lab(tmp_path_factory.mktemp("lab"))


def _lab(folder):
    lab = Lab(folder)
    yield lab
    remaining = lab.processes()
    for pid in remaining:
        os.kill(pid, 9)
    assert not remaining, f"processes left running: {remaining}"


@pytest.fixture(scope="session")
def standin(tmp_path_factory):
    """The folder of a libnvidia-ml.so.1 that the real client loads."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("driver")
    source = Path(__file__).parent / "features" / "telemetry" / "standin.c"
    command = [
        compiler,
        "-shared",
        "-fPIC",
        "-O1",
        "-Wl,-soname,libnvidia-ml.so.1",
        "-o",
        folder / "libnvidia-ml.so.1",
    ]
    subprocess.run([*command, source], check=True)
    return folder


@pytest.fixture
def driver(lab, standin):
    """Runs of the lab find the stand-in; `driver("lost=40")` says how it behaves, also in
    mid-run.
    """
    says = lab.folder / "standin"
    says.write_text("")
    lab.env |= {"LD_LIBRARY_PATH": str(standin), "STANDIN": f"@{says}"}

    def behave(text):
        new = says.with_suffix(".new")
        new.write_text(text)
        new.rename(says)

    return behave


@pytest.fixture
def tmux(lab):
    if not shutil.which("tmux"):
        pytest.skip("tmux is not installed")
    from tmux import Tmux

    server = Tmux(lab)
    yield server
    server.close()
    lab.none_left()


@pytest.fixture
def drive(lab, monkeypatch):
    """`journey.visit` with the homes of the lab."""
    monkeypatch.setenv(MARK, lab.mark)
    monkeypatch.setenv("XDG_STATE_HOME", str(lab.folder / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(lab.folder / "cache"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(lab.folder)

    from journey import visit

    return visit


@pytest.fixture
def hostile_scenario(tmp_path, monkeypatch):
    """A file of the current folder whose texts are hostile, for screens that play recorded runs."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "recorded.py"
    path.write_text(HOSTILE_SCENARIO)
    return path
