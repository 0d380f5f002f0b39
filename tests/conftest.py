"""What the tests share: the program as a user runs it, and proof that it leaves no process behind."""

import asyncio
import io
import json
import os
import shutil
import subprocess
import sys
import textwrap
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from rich.console import Console

from gpulab.model.state import fold_all
from gpulab.run.record import read

GPULAB = (sys.executable, "-m", "gpulab")
MARK = "GPULAB_TEST_MARK"


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
        return next(one for one in self.run["variants"] if one["name"] == name)

    def verdict(self, name):
        return next((one["verdict"] for one in self.run["comparisons"] if one["variant"] == name), None)

    @property
    def state(self):
        return fold_all(read(self.run_file).events)


def printed(renderable, width=80):
    """What a terminal of that width shows of it."""
    console = Console(width=width, file=io.StringIO())
    console.print(renderable)
    return console.file.getvalue()


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
        homes = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("STATE", "CACHE")}
        self.env = {**os.environ, MARK: self.mark, **homes, "NO_COLOR": "1"}

    def write(self, name, text):
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return path

    def start(self, *arguments, **options):
        usual = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": self.folder, "env": self.env}
        options = {**usual, **self.start_options, **options}
        return subprocess.Popen([*GPULAB, *map(str, arguments)], **options)

    def call(self, *arguments, **options):
        process = self.start(*arguments, **options)
        stdout, stderr = process.communicate(timeout=100)
        return Finished(process.returncode, stdout.decode(), stderr.decode(), self.folder / "run.jsonl")

    def run(self, what, *arguments, time_s="0.3"):
        """`gpulab --run what` with its JSON on stdout and its run file in `run.jsonl`."""
        run_file = self.folder / "run.jsonl"
        run_file.unlink(missing_ok=True)
        # Telemetry has tests of its own; elsewhere each variant's soak would only take time.
        quiet = () if "--telemetry" in arguments else ("--telemetry", "off")
        # So has the profile, whose second process takes as long again.
        quiet += () if {"--profile", "--trace", "--memory"} & set(arguments) else ("--profile", "off")
        options = ("--device", "cpu", "--time", time_s, "--json", "--output", run_file, *quiet, *arguments)
        finished = self.call("--run", what, *options)
        if finished.stdout:
            finished.result = json.loads(finished.stdout)
        return finished

    def processes(self):
        """Command lines of every live process that this lab started, however far away it went."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if self.mark.encode() in (entry / "environ").read_bytes():
                        found[int(entry.name)] = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
        return found

    def none_left(self, within=5.0):
        """Whether all processes are gone, at the latest after `within` seconds."""
        end = time.monotonic() + within
        while time.monotonic() < end:
            if not self.processes():
                return True
            time.sleep(0.05)
        return not self.processes()


@pytest.fixture
def lab(tmp_path):
    made = Lab(tmp_path)
    yield made
    left = made.processes()
    for pid in left:
        os.kill(pid, 9)
    assert not left, f"processes left behind: {left}"


@pytest.fixture(scope="session")
def standin(tmp_path_factory):
    """The folder of a libnvidia-ml.so.1 that the real client loads."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("driver")
    source = Path(__file__).parent / "telemetry" / "standin.c"
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wl,-soname,libnvidia-ml.so.1", "-o", folder / "libnvidia-ml.so.1"]
    subprocess.run([*command, source], check=True)
    return folder


@pytest.fixture
def driver(lab, standin):
    """Runs of the lab find the stand-in; `driver("lost=40")` says how it behaves, also in mid-run."""
    says = lab.folder / "standin"
    says.write_text("")
    lab.env |= {"LD_LIBRARY_PATH": str(standin), "STANDIN": f"@{says}"}

    def behave(text):
        new = says.with_suffix(".new")
        new.write_text(text)
        new.rename(says)

    return behave


@pytest.fixture
def drive(lab, monkeypatch):
    """Runs `journey(pilot)` in the app, over the scenarios of a file."""
    monkeypatch.setenv(MARK, lab.mark)
    monkeypatch.setenv("XDG_STATE_HOME", str(lab.folder / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(lab.folder / "cache"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(lab.folder)

    from journey import QUICK, choose, until

    from gpulab.tui.app import LabApp
    from gpulab.tui.screens.lab import LabScreen

    def drive(journey, *paths, size=(80, 24), settings=QUICK, ascii_only=False):
        async def go():
            app = LabApp(paths, settings, ascii_only=ascii_only)
            async with app.run_test(size=size) as pilot:
                await until(pilot, lambda: isinstance(app.screen, LabScreen))
                await choose(pilot, paths[0].stem if paths else "batched_matmul")
                await journey(pilot)

        asyncio.run(go())

    return drive
