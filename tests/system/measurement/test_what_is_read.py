"""What was read is measured, profiled and kept, whatever the file, or a compiled one beside it,
holds by then.
"""

import importlib.util
import py_compile
import subprocess
import sys
from hashlib import sha256

import pytest

from gpulab.core.events import FindingMade, RunStarted
from gpulab.core.run_file import read_run_file

SOURCE = "\ufeff" + (
    '# -*- coding: utf-8 -*- a tail of odd characters: \u202e \x7f \U0001d11e \\ "\r\n'
    "import inspect, pathlib, torch\r\n"
    "pathlib.Path(__file__).write_text('broken(')\r\n"
    "def step():\r\n"
    "    assert '# as it was read' in inspect.getsource(step)  # as it was read\r\n"
    "    return torch.ones(8).sum()\r\n"
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A file that rewrites itself as it runs, twice: to be measured, and to be profiled."""
    folder = tmp_path_factory.mktemp("what_is_read")
    path = folder / "train.py"
    other = folder / "other.py"
    other.write_text(f"open({str(folder / 'ran')!r}, 'w')\ndef step(): ...\n")
    cached = importlib.util.cache_from_source(str(path))
    py_compile.compile(
        str(other), cached, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    path.write_bytes(SOURCE.encode())
    options = [
        "--smoke",
        "--device",
        "cpu",
        "--telemetry",
        "off",
        "--output",
        "run.jsonl",
        "--trace",
        "t.json",
    ]
    command = [sys.executable, "-m", "gpulab", "--run", "train.py:step", *options]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return folder


def test_a_file_that_rewrites_itself_is_measured_and_profiled_as_it_was_read(finished):
    assert (finished / "train.py").read_text() == "broken("
    assert (finished / "t.json").exists()
    assert not (finished / "ran").exists()
    notices = [
        event
        for event in read_run_file(finished / "run.jsonl").events
        if isinstance(event, FindingMade)
    ]
    assert not [notice for notice in notices if notice.finding.code.startswith("profiling")]


def test_the_run_file_holds_what_ran(finished):
    (started,) = [
        event
        for event in read_run_file(finished / "run.jsonl").events
        if isinstance(event, RunStarted)
    ]
    subject = started.request.job.subject
    assert subject.source == SOURCE
    assert subject.source_sha256 == sha256(SOURCE.encode()).hexdigest()
